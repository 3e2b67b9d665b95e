#!/usr/bin/env bats
# The short form of tests/system: the installed unit's life under a real systemd, once from install to stop.

# The commands of `inside` have arguments of their own; bats sets output.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154

load calibrd_common
load ../system/container

setup_file() {
	container_start
}

teardown_file() {
	container_end
}

setup() {
	[ -z "$IMPOSSIBLE" ] || skip "$IMPOSSIBLE"
}

@test "the installed unit is sound, and its exposure 1.5 at most" {
	run -0 inside systemd-analyze security --offline=yes --no-pager --threshold=15 /usr/lib/systemd/system/calibrd.service
	figure "$(grep -o 'Overall exposure.*' <<<"$output")"
}

@test "start is ready at once; then it measures, and its policy is in /etc for anybody to show" {
	timed inside systemctl start calibrd
	figure "first start: systemctl came back after $MS ms, ready $(ready_times)"
	until_true status_is "Measuring: pass *"
	until_true inside test -e /etc/pageclear/policy.yaml
	run -0 as_nobody calibctl show
	holds "policy     /etc/pageclear/policy.yaml (this host)"
}

@test "reload: a bad configuration is refused, a good one taken, and the daemon is the same" {
	local pid
	call_it_good_here
	pid=$(main_pid)
	configure "efort: quick"
	run -0 inside systemctl reload calibrd
	journal err
	holds '/etc/pageclear/calibrd.yaml:1:1: unknown key "efort"'
	quiet noisy efort
	configure "$quick" "$any_time" "pins: [{intent: scrub, from: 4K, kernel: movnti}]"
	run -0 inside systemctl reload calibrd
	until_true inside grep -q 'kernel: movnti.*pinned: true' /etc/pageclear/policy.yaml
	[ "$(main_pid)" = "$pid" ]
}

@test "restart: nothing is measured again, and the policy stays to the byte; stop: nothing is left" {
	inside cp /etc/pageclear/policy.yaml /tmp/before.yaml
	timed inside systemctl restart calibrd
	figure "restart with a known topology: $MS ms, ready $(ready_times)"
	until_true status_is "Idle: the policy for topology * is /etc/pageclear/policy.yaml"
	inside cmp /etc/pageclear/policy.yaml /tmp/before.yaml
	figure "idle: $(memory)"
	timed inside systemctl stop calibrd
	figure "stop: $MS ms"
	run inside pgrep calibrd
	[ -z "$output" ]
	[ "$(database 'SELECT count(*) FROM calibration')" -eq 1 ]
	quiet noisy
}
