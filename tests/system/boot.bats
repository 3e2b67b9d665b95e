#!/usr/bin/env bats
# The installed unit under a real systemd: a container that boots this very system from an overlay, so that nothing of
# it is changed. The tests follow one another in one container. Takes root, systemd-nspawn and overlayfs; else it skips.

# The commands of `inside` have arguments of their own; bats sets output.
# shellcheck disable=SC2016,SC2154

load ../cli/calibrd_common

# Mounts live in a namespace of the container's own and end with it; its control groups in one that is removed. Booted is
# little more than systemd: none of the services that this system may have, and no network.
boot='
	merged=$W/root/merged
	for tree in /sys/fs/cgroup /sys/fs/cgroup/systemd /sys/fs/cgroup/unified; do
		[ ! -e $tree/cgroup.procs ] || { mkdir "$tree/$GROUP" && echo $$ >"$tree/$GROUP/cgroup.procs"; }
	done
	mount -t tmpfs tmpfs "$W/root"
	mkdir "$W/root/upper" "$W/root/work" "$merged"
	mount -t overlay -o "lowerdir=/,upperdir=$W/root/upper,workdir=$W/root/work" overlay "$merged"
	echo mounted
	make -s B="$B" install DESTDIR="$merged"
	mkdir -p "$merged/etc/pageclear"
	rm -rf "$merged"/etc/pageclear/* "$merged/var/lib/pageclear"
	echo "effort: quick" >"$merged/etc/pageclear/calibrd.yaml"
	echo installed
	mount -t tmpfs tmpfs /run
	exec systemd-nspawn --quiet -D "$merged" --boot --register=no --keep-unit --console=pipe --link-journal=no \
		--private-network systemd.unit=basic.target
'

setup_file() {
	cd "$BATS_TEST_DIRNAME/../.." || return
	make_folder
	export IMPOSSIBLE="" LEADER="" GROUP=pageclear-$$ LC_ALL=C
	mkdir "$W/root"
	if [ "$(id -u)" -ne 0 ]; then
		IMPOSSIBLE="not root: no container to be had"
	elif ! command -v systemd-nspawn nsenter unshare >/dev/null; then
		IMPOSSIBLE="systemd-nspawn, nsenter or unshare is missing"
	else
		launch "$W/boot.log" unshare -m --propagation private bash -euc "$boot"
		export NSPAWN=$PID
		until_true is_decided
		grep -qx installed "$W/boot.log" || grep -qx mounted "$W/boot.log" || IMPOSSIBLE="no overlay to be had: $(cat "$W/boot.log")"
		[ -n "$IMPOSSIBLE" ] || grep -qx installed "$W/boot.log" || { cat "$W/boot.log"; return 1; }
		[ -n "$IMPOSSIBLE" ] || until_true is_booted || IMPOSSIBLE="no container came up: $(tail -n 5 "$W/boot.log")"
	fi
}

is_decided() {
	grep -qx installed "$W/boot.log" || is_gone "$NSPAWN"
}

is_booted() {
	! is_gone "$NSPAWN" || return 0
	LEADER=$(child_of "$NSPAWN")
	[ -n "$LEADER" ] && [[ $(inside systemctl is-system-running 2>/dev/null) =~ ^(running|degraded)$ ]]
}

teardown_file() {
	[ -z "$LEADER" ] || kill -KILL "$LEADER" || true
	[ -z "$NSPAWN" ] || until_true is_gone "$NSPAWN"
	end_all
	for tree in /sys/fs/cgroup /sys/fs/cgroup/systemd /sys/fs/cgroup/unified; do
		[ ! -d "$tree/$GROUP" ] || find "$tree/$GROUP" -depth -type d -exec rmdir '{}' ';'
	done
	rm -rf "$W"
}

setup() {
	[ -z "$IMPOSSIBLE" ] || skip "$IMPOSSIBLE"
}

inside() {
	nsenter -t "$LEADER" -a "$@" </dev/null 3>&-
}

# The same for what needs a shell.
inside_sh() {
	inside bash -euc "$@"
}

property() {
	inside systemctl show -P "$1" calibrd
}

status_is() {
	# shellcheck disable=SC2053 # a pattern on purpose
	[[ $(property StatusText) == $1 ]]
}

# What the unit's journal has of this level and above since the last call, in output. No entry is exit status 1 or 0,
# as the cursor has it.
journal() {
	inside journalctl --sync
	run inside journalctl -q -u calibrd -p "$1" -o cat --no-pager --cursor-file="/tmp/cursor-$1"
}

quiet() {
	journal warning
	[ -z "$output" ] || {
		echo "$output"
		return 1
	}
}

figure() {
	echo "# $*" >&3
}

# Milliseconds from the start of the unit, and of the program, to READY=1.
ready_times() {
	local unit program ready
	unit=$(property InactiveExitTimestampMonotonic)
	program=$(property ExecMainStartTimestampMonotonic)
	ready=$(property ActiveEnterTimestampMonotonic)
	echo "$(((ready - unit) / 1000)) ms after its start, $(((ready - program) / 1000)) ms after calibrd's"
}

memory() {
	inside awk '/^(VmRSS|RssAnon)/ { printf "%s %d KiB ", $1, $2 }' "/proc/$(property MainPID)/status"
}

switches() {
	inside awk '/ctxt_switches/ { sum += $2 } END { print sum }' "/proc/$1/status"
}

# Stops the unit, as systemctl sees it. A stopped unit is forgotten, its result too: the journal has it.
stop() {
	local from=${EPOCHREALTIME/./}
	run -0 inside systemctl stop calibrd
	figure "$1: $(((${EPOCHREALTIME/./} - from) / 1000)) ms"
	journal info
	holds "Deactivated successfully"
}

database() {
	inside sqlite3 /var/lib/pageclear/calibrd.db "$1"
}

# --- the first start -------------------------------------------------------------------------------------------------

@test "the unit is a sound one" {
	run -0 inside systemd-analyze verify /usr/lib/systemd/system/calibrd.service
	# man pages that aren't there are no fault of the unit
	output=$(grep -v 'man ' <<<"$output" || true)
	[ -z "$output" ]
}

@test "start returns at once: ready, and measuring in the background" {
	run -0 inside systemctl start calibrd
	[ "$(property ActiveState)" = active ]
	[ ! -e "/proc/$LEADER/root/etc/pageclear/policy.yaml" ]
	figure "first start: ready $(ready_times)"
	until_true status_is "Measuring: pass *"
}

@test "STATUS= moves while it measures, then a policy is there that calibctl shows" {
	local seen=""
	for ((i = 0; i < 400; i++)); do
		status=$(property StatusText)
		[[ $seen == *"|$status|"* ]] || seen+="|$status|"
		[[ $status != Idle* ]] || break
		sleep 0.1
	done
	echo "$seen"
	[ "$(grep -o '|Measuring: pass [0-9]* of [0-9]*, [0-9]* %' <<<"$seen" | wc -l)" -ge 3 ]
	[[ $status == "Idle: the policy for topology "*" is /etc/pageclear/policy.yaml" ]]
	[ "$(inside stat -c '%a %U' /etc/pageclear/policy.yaml)" = "644 root" ]
	run -0 inside calibctl show
	holds "policy     /etc/pageclear/policy.yaml (this host)"
	run inside calibctl status
	holds "library    /etc/pageclear/policy.yaml: generation 1"
	holds "calibration 1: done, quick effort"
	[ "$(inside ls -A /etc/pageclear /var/lib/pageclear | tr '\n' ' ')" = \
		"/etc/pageclear: calibrd.yaml policy.yaml  /var/lib/pageclear: calibrd.db calibrd.db.lock " ]
	quiet
}

@test "idle, after measuring: no child, no wake-up" {
	local pid before
	pid=$(property MainPID)
	[ -z "$(inside cat "/proc/$pid/task/$pid/children")" ]
	before=$(switches "$pid")
	sleep 2
	[ "$(switches "$pid")" = "$before" ]
	figure "idle after measuring: $(memory)"
}

# --- reload and restart ----------------------------------------------------------------------------------------------

@test "reload with a bad configuration: the old one stays, and so does the daemon" {
	local pid
	pid=$(property MainPID)
	inside_sh 'echo "efort: quick" >>/etc/pageclear/calibrd.yaml'
	run -0 inside systemctl reload calibrd
	[ "$(property ActiveState)" = active ]
	[ "$(property MainPID)" = "$pid" ]
	journal err
	holds '/etc/pageclear/calibrd.yaml:2:1: unknown key "efort"'
	holds "the configuration of before stays"
}

@test "reload with a good one: pins are published without measuring" {
	# A busy machine may have found it noisy, and would measure again: not what is tested.
	database "UPDATE calibration SET quality = 'good'"
	inside_sh 'printf "effort: quick\npins: [{intent: scrub, from: 4K, kernel: movnti}]\n" >/etc/pageclear/calibrd.yaml'
	run -0 inside systemctl reload calibrd
	until_true inside grep -q 'from: 4096, kernel: movnti, chunk: 0, pinned: true' /etc/pageclear/policy.yaml
	[ "$(database 'SELECT count(*) FROM calibration')" -eq 1 ]
	journal warning
}

@test "restart with a known topology: ready, nothing measured, the policy stays to the byte" {
	inside cp /etc/pageclear/policy.yaml /tmp/before.yaml
	run -0 inside systemctl restart calibrd
	figure "restart with a known topology: ready $(ready_times)"
	until_true status_is "Idle: *"
	inside cmp /etc/pageclear/policy.yaml /tmp/before.yaml
	[ "$(database 'SELECT count(*) FROM calibration')" -eq 1 ]
	figure "idle after a restart: $(memory)"
	quiet
}

# --- stop ------------------------------------------------------------------------------------------------------------

@test "stop: nothing is left, and nothing is said" {
	local pid
	pid=$(property MainPID)
	stop "stop"
	[ ! -e "/proc/$LEADER/root/proc/$pid" ]
	quiet
}

@test "stop while measuring: nothing half-written, no complaint" {
	inside_sh 'echo "effort: standard" >/etc/pageclear/calibrd.yaml'
	inside systemctl start calibrd
	until_true status_is "Measuring: pass *"
	# Its pin is gone from the configuration: published at once, before it measures.
	inside_sh '! grep pinned /etc/pageclear/policy.yaml'
	inside cp /etc/pageclear/policy.yaml /tmp/before.yaml
	stop "stop while measuring"
	holds "stopped while measuring; nothing was published"
	run inside_sh 'grep -l calibrd /proc/[0-9]*/comm'
	[ -z "$output" ]
	inside cmp /etc/pageclear/policy.yaml /tmp/before.yaml
	[ "$(inside ls -A /etc/pageclear | tr '\n' ' ')" = "calibrd.yaml policy.yaml " ]
	[ "$(database 'PRAGMA integrity_check')" = ok ]
	[ "$(database 'SELECT state, reasons FROM calibration ORDER BY id DESC LIMIT 1')" = "failed|stopped by a signal" ]
	quiet
}

# --- what goes wrong -------------------------------------------------------------------------------------------------

@test "a mistake in calibrd.yaml: the start fails with its place, and is not tried again" {
	inside_sh 'echo "effort: fast" >/etc/pageclear/calibrd.yaml'
	run -1 inside systemctl start calibrd
	[ "$(property ExecMainStatus)" = 2 ]
	[ "$(property ActiveState)" = failed ]
	journal err
	holds "/etc/pageclear/calibrd.yaml:1:9: effort: expected one of quick, standard, thorough, found fast"
	inside systemctl reset-failed calibrd
	journal warning
}

@test "/etc read-only and without a folder: published under /run, said in STATUS=, taken back once /etc works" {
	inside_sh '
		rm -r /etc/pageclear
		echo "effort: quick" >/usr/lib/pageclear/calibrd.yaml
		mount --bind /etc /etc
		mount -o remount,ro,bind /etc
	'
	run -0 inside systemctl start calibrd
	until_true status_is "Idle: the policy for topology * is /run/pageclear/policy.yaml"
	journal warning
	holds "published as /run/pageclear/policy.yaml"
	run -0 inside calibctl show
	holds "policy     /run/pageclear/policy.yaml"
	inside umount /etc
	run -0 inside systemctl restart calibrd
	until_true status_is "Idle: the policy for topology * is /etc/pageclear/policy.yaml"
	[ "$(inside ls -A /etc/pageclear /run/pageclear | tr '\n' ' ')" = "/etc/pageclear: policy.yaml  /run/pageclear: " ]
	quiet
}
