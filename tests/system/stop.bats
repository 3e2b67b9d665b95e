#!/usr/bin/env bats
# `systemctl stop` in every phase: at once, nothing half-written, no complaint. How long it took is a figure.

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

# Stops the unit, as systemctl sees it. A stopped unit is forgotten, its result too: the journal has it. Nothing of it is
# left, no process and no file.
stop() {
	timed inside systemctl stop calibrd
	figure "stop $1: $MS ms"
	journal info
	holds "Deactivated successfully"
	lacks "Killing process"
	run inside pgrep calibrd
	[ -z "$output" ]
	[ "$(database 'PRAGMA integrity_check')" = ok ]
	[ "$(database "SELECT count(*) FROM calibration WHERE state = 'running'")" = 0 ]
	[ "$(inside ls -A /var/lib/pageclear | tr '\n' ' ')" = "calibrd.db calibrd.db.lock " ]
	[ "$(inside ls -A /etc/pageclear | grep -vx -e calibrd.yaml -e calibrd.yaml.d -e policy.yaml)" = "" ]
	quiet noisy
}

# Most often while it opens its database or looks for the topology.
@test "while starting, ten times" {
	local times=()
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		inside systemctl start calibrd
		timed inside systemctl stop calibrd
		times+=("$MS")
	done
	figure "stop right after the start: median $(median "${times[@]}") ms of ${times[*]}"
	inside systemctl start calibrd
	stop "while starting"
}

measures() {
	inside pgrep -x calibrd-worker >/dev/null
}

@test "as soon as the child is there: trials" {
	inside systemctl start calibrd
	until_true measures
	stop "in trials"
}

@test "while measuring: knee and rounds, early and late" {
	for share in 1 30 70; do
		inside systemctl start calibrd
		until_true reached $share
		stop "at $share % of measuring"
		[ "$(database 'SELECT state, reasons FROM calibration ORDER BY id DESC LIMIT 1')" = "failed|stopped by a signal" ]
		inside test ! -e /etc/pageclear/policy.yaml
	done
}

reached() {
	local status
	status=$(property StatusText)
	[[ $status =~ ,\ ([0-9]+)\ % ]] && [ "${BASH_REMATCH[1]}" -ge "$1" ]
}

# Between the last sample and the policy: some tens of milliseconds. Whatever was met, the next start goes on from there.
@test "around publishing" {
	inside systemctl start calibrd
	until_true reached 1
	until_true is_ending
	stop "around publishing"
	inside systemctl start calibrd
	until_true inside test -e /etc/pageclear/policy.yaml
	stop "after publishing"
	run -0 inside calibctl show
	holds "(this host)"
}

is_ending() {
	! measures || inside test -e /etc/pageclear/policy.yaml
}

@test "idle" {
	inside systemctl start calibrd
	call_it_good_here
	stop "idle"
}

@test "while verifying: the policy stays to the byte" {
	local before
	inside systemctl start dbus.socket dbus.service
	inside systemctl start calibrd
	until_true status_is "Idle: *"
	until_true inside busctl status org.pageclear.Calibrd1 >/dev/null
	before=$(inside cksum /etc/pageclear/policy.yaml)
	run -0 inside busctl call org.pageclear.Calibrd1 /org/pageclear/Calibrd1 org.pageclear.Calibrd1 Verify s ""
	until_true status_is "Verifying: pass *"
	stop "while verifying"
	[ "$(inside cksum /etc/pageclear/policy.yaml)" = "$before" ]
}

# Pressure of 0 % and more is too much for it: it waits for as long as it may.
@test "while waiting for a quiet host" {
	[ -e /proc/pressure/cpu ] || skip "this kernel has no pressure to be waited out"
	configure "$quick" "quiet: {most_percent: 0, wait_seconds: 3600}"
	inside_sh 'rm -rf /var/lib/pageclear/*'
	inside systemctl start calibrd
	until_true waits_or_measures
	status_is "Waiting: *" || figure "this host was so quiet that there was nothing to wait for"
	stop "while waiting"
	configure "$quick" "$any_time"
}

waits_or_measures() {
	status_is "Waiting: *" || status_is "Measuring: *"
}
