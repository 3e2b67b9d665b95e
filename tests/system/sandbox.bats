#!/usr/bin/env bats
# What the unit forbids, and that all that calibrd does works all the same: measuring pinned, at its priority, on huge
# pages; the database; publishing; what it reads of the host; the kernel's events.

# The commands of `inside` have arguments of their own; bats sets output.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154

load ../cli/calibrd_common
load container

setup_file() {
	container_start
}

teardown_file() {
	container_end
}

setup() {
	[ -z "$IMPOSSIBLE" ] || skip "$IMPOSSIBLE"
}

status_of() {
	inside sed -n "s/^$2:[[:space:]]*//p" "/proc/$1/status"
}

# The measuring child, in WORKER; there for ten seconds.
find_worker() {
	WORKER=$(inside pgrep -x calibrd-worker)
}

@test "systemd finds nothing wrong with the unit" {
	run -0 inside systemd-analyze verify /usr/lib/systemd/system/calibrd.service
	# man pages that aren't there are no fault of the unit
	output=$(grep -v 'man ' <<<"$output" || true)
	[ -z "$output" ]
}

@test "systemd-analyze security: exposure 1.5 at most" {
	run -0 inside systemd-analyze security --offline=yes --no-pager --threshold=15 /usr/lib/systemd/system/calibrd.service
	figure "$(grep -o 'Overall exposure.*' <<<"$output")"
	holds "Overall exposure level for calibrd.service: "
}

# Those with an exposure of their own: each is in the unit's comment, and none else.
@test "every exception is explained in the unit, and nothing else is" {
	local found explained
	found=$(inside systemd-analyze security --offline=yes --json=short /usr/lib/systemd/system/calibrd.service |
		jq -r '.[] | select((.exposure // "0" | tonumber) > 0) | .json_field' |
		sed 's/_.*//; s/Or[A-Z].*//' | sort -u)
	explained=$(sed -n 's/^#   \([A-Za-z]*\)= .*/\1/p' systemd/calibrd.service | sort -u)
	echo "found: $found"
	diff <(echo "$found") <(echo "$explained")
}

@test "it is root without a capability, and may gain none" {
	local pid
	inside systemctl start calibrd
	pid=$(main_pid)
	for set in CapInh CapPrm CapEff CapBnd CapAmb; do
		[ "$(status_of "$pid" $set)" = 0000000000000000 ]
	done
	[ "$(status_of "$pid" NoNewPrivs)" = 1 ]
	[ "$(status_of "$pid" Seccomp)" = 2 ]
}

@test "what it reads of the host is there: pressure, load, memory, control groups, sysfs" {
	local pid
	pid=$(main_pid)
	for file in /proc/stat /proc/meminfo /proc/loadavg /proc/cpuinfo /proc/self/cgroup /sys/devices/system/cpu/online; do
		[ -n "$(inside nsenter -t "$pid" -m cat $file)" ]
	done
	[ ! -e /proc/pressure/cpu ] || inside nsenter -t "$pid" -m cat /proc/pressure/cpu /proc/pressure/memory
	[ "$(inside nsenter -t "$pid" -m ls /sys/fs/cgroup)" = "$(inside ls /sys/fs/cgroup)" ]
}

@test "what it may not write is read-only: all but its own folders" {
	local pid
	pid=$(main_pid)
	for folder in /etc /usr /var/lib /sys/kernel /proc/sys /boot /sys/fs/cgroup; do
		[ ! -e "/proc/$LEADER/root$folder" ] || inside_sh '! nsenter -t "$1" -m test -w "$2"' writable "$pid" $folder
	done
	for folder in /etc/pageclear /var/lib/pageclear /run/pageclear; do
		inside nsenter -t "$pid" -m test -w $folder
	done
}

@test "the child measures pinned to a CPU, at its priority, in the same sandbox" {
	until_true find_worker
	until_true status_is "Measuring: *"
	[[ $(status_of "$WORKER" Cpus_allowed_list) =~ ^[0-9]+$ ]]
	[ "$(inside ps -o ni= -p "$WORKER" | tr -d ' ')" -gt 0 ]
	[ "$(status_of "$WORKER" CapEff)" = 0000000000000000 ]
	[ "$(status_of "$WORKER" Seccomp)" = 2 ]
}

# Ends with the child, at the latest.
has_huge_pages() {
	HUGE_KIB=$(inside awk '/^AnonHugePages/ { print $2 }' "/proc/$WORKER/smaps_rollup" 2>/dev/null) || return 0
	[ "${HUGE_KIB:-0}" -gt 0 ]
}

@test "the child measures on huge pages" {
	grep -q '\[never\]' /sys/kernel/mm/transparent_hugepage/enabled && skip "this host gives no huge pages"
	find_worker
	until_true has_huge_pages
	[ "$HUGE_KIB" -gt 0 ]
}

@test "the outcome is in the database, and published in /etc" {
	until_true inside test -e /etc/pageclear/policy.yaml
	[ "$(database "SELECT state FROM calibration")" = "done" ]
	[ "$(database 'PRAGMA integrity_check')" = ok ]
	[ "$(inside stat -c '%a %U %G' /etc/pageclear/policy.yaml /var/lib/pageclear/calibrd.db | uniq)" = "644 root root" ]
	[ "$(inside ls -A /run/pageclear)" = "" ]
	run -0 as_nobody calibctl show
	holds "policy     /etc/pageclear/policy.yaml (this host)"
	run -0 as_nobody calibctl history
	call_it_good_here
	quiet noisy
}

# A CPU and a power supply change by what udev is told: the same message is had by writing to `uevent`, and changes nothing.
@test "the kernel's events reach it" {
	local pid before
	[ -w /sys/devices/system/cpu/cpu0/uevent ] || skip "sysfs is read-only: no event to be had"
	pid=$(main_pid)
	sleeps "$pid"
	before=$(switches "$pid")
	echo change >/sys/devices/system/cpu/cpu0/uevent
	until_true woke_up "$pid" "$before"
}

woke_up() {
	[ "$(switches "$1")" -gt "$2" ]
}

# systemd writes each of these down at the arrival of calibrd's own word.
@test "READY=1, STATUS= and WATCHDOG=1 reach systemd" {
	local before
	[ "$(property ActiveState)" = active ]
	before=$(property WatchdogTimestampMonotonic)
	[ "$before" -gt 0 ]
	override WatchdogSec=2
	inside systemctl restart calibrd
	before=$(property WatchdogTimestampMonotonic)
	until_true is_later WatchdogTimestampMonotonic "$before"
	sleep 3
	[ "$(property NRestarts)" = 0 ]
	no_override
	inside systemctl restart calibrd
}

is_later() {
	[ "$(property "$1")" -gt "$2" ]
}

# Stopped it can't answer: killed, and started again after RestartSec.
@test "a hung daemon is killed by the watchdog and started again" {
	local pid
	override WatchdogSec=1 RestartSec=0
	inside systemctl restart calibrd
	pid=$(main_pid)
	inside kill -STOP "$pid"
	until_true restarted_from "$pid"
	[ "$(database 'PRAGMA integrity_check')" = ok ]
	no_override
	inside systemctl restart calibrd
	journal warning
	holds "Watchdog timeout"
}

restarted_from() {
	[ "$(property NRestarts)" -ge 1 ] && [ "$(property ActiveState)" = active ] && [ "$(main_pid)" != "$1" ]
}
