#!/usr/bin/env bats
# The unit's life in a booted system: install, first start, reload, drop-ins, restart, stop, and a journal that has nothing
# to complain of. How it starts and stops in time is a figure here, never a verdict.

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

# --- install ---------------------------------------------------------------------------------------------------------

@test "make install puts everything in its place" {
	for file in sbin/calibrd bin/calibctl lib/pageclear/calibrd.yaml lib/systemd/system/calibrd.service \
		lib/tmpfiles.d/pageclear.conf lib/systemd/catalog/pageclear.catalog share/dbus-1/system.d/org.pageclear.Calibrd1.conf \
		share/dbus-1/interfaces/org.pageclear.Calibrd1.xml share/pageclear/calibrd.schema.json share/man/man8/calibrd.8; do
		inside test -f /usr/$file
	done
	[ "$(inside ls -A /etc/pageclear | tr '\n' ' ')" = "calibrd.yaml calibrd.yaml.d " ]
	[ "$(inside ls -A /etc/pageclear/calibrd.yaml.d)" = "" ]
	inside_sh '! grep @PREFIX@ /usr/lib/systemd/system/calibrd.service'
}

@test "tmpfiles make the folders, for all to read" {
	inside_sh 'umask 077; rm -rf /var/lib/pageclear /run/pageclear; systemd-tmpfiles --create pageclear.conf'
	[ "$(inside stat -c '%a %U %G' /etc/pageclear /etc/pageclear/calibrd.yaml.d /var/lib/pageclear /run/pageclear | uniq)" = \
		"755 root root" ]
}

@test "it can be enabled, for multi-user.target" {
	run -0 inside systemctl enable calibrd
	inside test -L /etc/systemd/system/multi-user.target.wants/calibrd.service
	run -0 inside systemctl disable calibrd
}

@test "the journal's catalog explains each message with an id" {
	inside journalctl --update-catalog
	while read -r id; do
		run -0 inside journalctl --dump-catalog "$id"
		holds "Subject: "
	done < <(sed -n 's/^-- //p' systemd/pageclear.catalog)
}

# --- the first start -------------------------------------------------------------------------------------------------

@test "start returns at once: ready, and measuring in the background" {
	timed inside systemctl start calibrd
	[ "$(property ActiveState)" = active ]
	[ ! -e "/proc/$LEADER/root/etc/pageclear/policy.yaml" ]
	figure "first start: systemctl came back after $MS ms, ready $(ready_times)"
	until_true status_is "Measuring: pass *"
}

@test "STATUS= moves while it measures, then a policy is there that calibctl shows" {
	local seen=""
	for ((i = 0; i < 400; i++)); do
		status=$(property StatusText)
		[[ $seen == *"|$status|"* ]] || seen+="|$status|"
		[[ $status == Measuring* ]] || break
		sleep 0.1
	done
	echo "$seen"
	[ "$(grep -o '|Measuring: pass [0-9]* of [0-9]*, [0-9]* %' <<<"$seen" | wc -l)" -ge 3 ]
	[ "$(inside stat -c '%a %U' /etc/pageclear/policy.yaml)" = "644 root" ]
	run -0 inside calibctl show
	holds "policy     /etc/pageclear/policy.yaml (this host)"
	run inside calibctl status
	holds "library    /etc/pageclear/policy.yaml: generation 1"
	holds "calibration 1: done, quick effort"
	[ "$(inside ls -A /etc/pageclear /var/lib/pageclear | tr '\n' ' ')" = \
		"/etc/pageclear: calibrd.yaml calibrd.yaml.d policy.yaml  /var/lib/pageclear: calibrd.db calibrd.db.lock " ]
}

# On a busy machine it may have been noisy, which is a warning of its own.
@test "the journal has it with fields, and nothing to complain of" {
	local entry topology
	inside journalctl --sync
	topology=$(topology "/proc/$LEADER/root/etc/pageclear/policy.yaml")
	entry=$(inside journalctl -q -u calibrd -o json --no-pager MESSAGE_ID="$published")
	echo "$entry"
	[ "$(jq -rs 'length' <<<"$entry")" = 1 ]
	[ "$(jq -r '.MESSAGE' <<<"$entry")" = "published generation 1 in /etc/pageclear/policy.yaml" ]
	[ "$(jq -r '[.PRIORITY, .SYSLOG_IDENTIFIER, ._TRANSPORT] | join(" ")' <<<"$entry")" = "5 calibrd journal" ]
	[ "$(jq -r '.PAGECLEAR_TOPOLOGY' <<<"$entry")" = "$topology" ]
	quiet noisy
}

@test "idle, after measuring: no child, no wake-up" {
	local pid
	call_it_good_here
	pid=$(main_pid)
	[ -z "$(inside cat "/proc/$pid/task/$pid/children")" ]
	sleeps "$pid"
	figure "idle after measuring: $(memory)"
}

# --- reload and restart ----------------------------------------------------------------------------------------------

@test "reload with a bad configuration: the old one stays, and so does the daemon" {
	local pid
	pid=$(main_pid)
	inside_sh 'echo "efort: quick" >>/etc/pageclear/calibrd.yaml'
	run -0 inside systemctl reload calibrd
	[ "$(property ActiveState)" = active ]
	[ "$(main_pid)" = "$pid" ]
	journal err
	holds '/etc/pageclear/calibrd.yaml:3:1: unknown key "efort"'
	holds "the configuration of before stays"
	configure "$quick" "$any_time"
	journal warning
}

@test "a drop-in is read on reload, and its mistakes have their place" {
	local folder=/etc/pageclear/calibrd.yaml.d
	inside_sh 'echo "pins: [{intent: scrub, from: 4K, kernel: movnti}]" >'$folder/50-pins.yaml
	run -0 inside systemctl reload calibrd
	until_true inside grep -q 'from: 4096, kernel: movnti.*pinned: true' /etc/pageclear/policy.yaml
	[ "$(database 'SELECT count(*) FROM calibration')" -eq 1 ]
	inside_sh 'echo "scrub_weight: heavy" >'$folder/60-bad.yaml
	run -0 inside systemctl reload calibrd
	journal err
	holds "$folder/60-bad.yaml:1:15: scrub_weight: "
	inside grep -q 'pinned: true' /etc/pageclear/policy.yaml
	journal warning
	inside rm $folder/60-bad.yaml $folder/50-pins.yaml
	run -0 inside systemctl reload calibrd
	until_true inside_sh '! grep -q pinned /etc/pageclear/policy.yaml'
	quiet
}

@test "restart with a known topology: ready, nothing measured, the policy stays to the byte" {
	local times=()
	inside cp /etc/pageclear/policy.yaml /tmp/before.yaml
	for _ in 1 2 3 4 5; do
		run -0 inside systemctl stop calibrd
		timed inside systemctl start calibrd
		times+=("$MS")
		until_true status_is "Idle: the policy for topology * is /etc/pageclear/policy.yaml"
	done
	figure "start with a known topology: systemctl came back after $(median "${times[@]}") ms (of ${times[*]}), ready $(ready_times)"
	inside cmp /etc/pageclear/policy.yaml /tmp/before.yaml
	[ "$(database 'SELECT count(*) FROM calibration')" -eq 1 ]
	figure "idle after a restart: $(memory)"
	quiet
}

@test "starts again and again on a host that was never measured: none waits for measuring" {
	local times=()
	for _ in 1 2 3 4 5; do
		inside_sh 'systemctl stop calibrd; rm -rf /var/lib/pageclear /etc/pageclear/policy.yaml'
		timed inside systemctl start calibrd
		times+=("$MS")
		[ "$(property ActiveState)" = active ]
	done
	figure "first start: systemctl came back after $(median "${times[@]}") ms (of ${times[*]})"
	until_true status_is "Measuring: pass *"
	journal warning
}

# --- ends ------------------------------------------------------------------------------------------------------------

@test "disabled and stopped it is gone, and the policy stays" {
	local pid
	pid=$(main_pid)
	run -0 inside systemctl disable --now calibrd
	[ ! -e "/proc/$LEADER/root/proc/$pid" ]
	[ "$(property ActiveState)" = inactive ]
	quiet
}

@test "a mistake in calibrd.yaml: the start fails with its place, and is not tried again" {
	configure "effort: fast"
	run -1 inside systemctl start calibrd
	[ "$(property ExecMainStatus)" = 2 ]
	[ "$(property ActiveState)" = failed ]
	journal err
	holds "/etc/pageclear/calibrd.yaml:1:9: effort: expected one of quick, standard, thorough, found fast"
	inside systemctl reset-failed calibrd
	configure "$quick" "$any_time"
	journal warning
}

# A kill says nothing to the daemon: systemd starts it again, after RestartSec=.
@test "killed it comes back by itself, and has lost nothing" {
	override RestartSec=0
	inside systemctl start calibrd
	inside kill -KILL "$(main_pid)"
	until_true has_restarted
	[ "$(database 'PRAGMA integrity_check')" = ok ]
	inside systemctl stop calibrd
	no_override
	journal warning
}

has_restarted() {
	[ "$(property NRestarts)" = 1 ] && [ "$(property ActiveState)" = active ]
}
