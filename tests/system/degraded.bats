#!/usr/bin/env bats
# A host that lacks something, under the unit's sandbox: read-only or missing folders, half a CPU. The service stays up,
# says so once, and goes back to where it belongs once it can.

# The commands of `inside` have arguments of their own; bats sets output.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154

load ../cli/calibrd_common
load container

# Measured once: what follows is about places.
setup_file() {
	container_start
	[ -n "$IMPOSSIBLE" ] || {
		inside systemctl start calibrd
		until_true inside test -e /etc/pageclear/policy.yaml
		call_it_good_here
		inside systemctl stop calibrd
		journal warning
		TOPOLOGY=$(topology "/proc/$LEADER/root/etc/pageclear/policy.yaml")
		export TOPOLOGY
	}
}

teardown_file() {
	container_end
}

setup() {
	[ -z "$IMPOSSIBLE" ] || skip "$IMPOSSIBLE"
}

teardown() {
	[ -n "$IMPOSSIBLE" ] || inside systemctl stop calibrd
}

read_only() {
	inside_sh 'mount --bind "$1" "$1"; mount -o remount,ro,bind "$1"' read-only "$1"
}

there() {
	inside ls -A "$@" | tr '\n' ' '
}

said_once() {
	[ "$(grep -c -- "$1" <<<"$output")" -eq 1 ] || {
		echo "not once: $1 in: $output"
		return 1
	}
}

@test "/etc read-only: published under /run, said once with its reason, taken back at the next start" {
	inside rm /etc/pageclear/policy.yaml
	read_only /etc
	run -0 inside systemctl start calibrd
	until_true status_is "Idle: the policy for topology * is /run/pageclear/policy.yaml"
	journal warning
	said_once "published as /run/pageclear/policy.yaml"
	run -0 inside calibctl show
	holds "policy     /run/pageclear/policy.yaml"
	inside umount /etc
	run -0 inside systemctl restart calibrd
	until_true status_is "Idle: the policy for topology * is /etc/pageclear/policy.yaml"
	[ "$(there /run/pageclear)" = "" ]
	quiet
}

@test "/etc read-only and without a folder: no different" {
	inside_sh 'cp /etc/pageclear/calibrd.yaml /usr/lib/pageclear/; rm -r /etc/pageclear'
	read_only /etc
	run -0 inside systemctl start calibrd
	until_true status_is "Idle: the policy for topology * is /run/pageclear/policy.yaml"
	journal warning
	said_once "published as /run/pageclear/policy.yaml"
	inside umount /etc
	run -0 inside systemctl restart calibrd
	until_true status_is "Idle: the policy for topology * is /etc/pageclear/policy.yaml"
	[ "$(there /etc/pageclear /run/pageclear)" = "/etc/pageclear: policy.yaml  /run/pageclear: " ]
	quiet
}

@test "/var read-only: the policy stays, what is new is kept under /run, and brought home at the next start" {
	local before
	before=$(database 'SELECT count(*) FROM calibration')
	read_only /var/lib
	run -0 inside systemctl start calibrd
	until_true status_is "Idle: the policy for topology * is /etc/pageclear/policy.yaml"
	journal warning
	said_once "/run/pageclear/calibrd.db"
	inside umount /var/lib
	run -0 inside systemctl restart calibrd
	until_true status_is "Idle: *"
	[ "$(database 'SELECT count(*) FROM calibration')" -ge "$before" ]
	[ "$(database 'PRAGMA integrity_check')" = ok ]
	inside test ! -e /run/pageclear/calibrd.db
	quiet
}

@test "/var read-only and without a folder: measured into /run, kept till /var works" {
	inside_sh 'rm -r /var/lib/pageclear'
	read_only /var/lib
	run -0 inside systemctl start calibrd
	until_true inside test -e /run/pageclear/calibrd.db
	journal warning
	said_once "/run/pageclear/calibrd.db"
	until_true status_is "Measuring: pass *"
	until_true measured_into /run/pageclear/calibrd.db
	inside systemctl stop calibrd
	inside umount /var/lib
	run -0 inside systemctl start calibrd
	until_true measured_into /var/lib/pageclear/calibrd.db
	inside test ! -e /run/pageclear/calibrd.db
	[ "$(database 'PRAGMA integrity_check')" = ok ]
	call_it_good_here
	journal warning
}

measured_into() {
	[ "$(inside sqlite3 "$1" "SELECT count(*) FROM calibration WHERE state = 'done'" 2>/dev/null)" = 1 ]
}

@test "no folder anywhere, and nothing read-only: made at the start" {
	inside_sh 'rm -rf /etc/pageclear /var/lib/pageclear /run/pageclear'
	run -0 inside systemctl start calibrd
	until_true inside test -e /var/lib/pageclear/calibrd.db
	[ "$(inside stat -c '%a %U %G' /etc/pageclear /var/lib/pageclear /run/pageclear | uniq)" = "755 root root" ]
	quiet
}

@test "a damaged database: set aside, said, and measured anew" {
	inside_sh 'printf "%5000s" nonsense | dd of=/var/lib/pageclear/calibrd.db conv=notrunc status=none'
	run -0 inside systemctl start calibrd
	until_true inside test -e /var/lib/pageclear/calibrd.db.damaged-1
	journal warning
	said_once "damaged"
	until_true status_is "Measuring: pass *"
	[ "$(database 'PRAGMA integrity_check')" = ok ]
}

# Where it may run is no part of the topology.
@test "one CPU allowed: measured on that one, as the same topology" {
	local cpu
	inside_sh 'rm -rf /var/lib/pageclear/* /etc/pageclear/policy.yaml'
	cpu=$(inside sed -n 's/^Cpus_allowed_list:[^0-9]*\([0-9]*\).*/\1/p' /proc/1/status)
	override CPUAffinity="$cpu"
	run -0 inside systemctl start calibrd
	until_true inside pgrep -x calibrd-worker
	[ "$(inside sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' "/proc/$(inside pgrep -x calibrd-worker)/status")" = "$cpu" ]
	until_true has_ended
	no_override
	[ "$(database "SELECT topology FROM calibration")" = "$TOPOLOGY" ]
	journal warning
}

# A container's own limit, or an admin's: seen, kept to, and an honest outcome.
@test "half a CPU: the service measures, and says that a quota held it up" {
	[ "$(property CPUQuotaPerSecUSec)" = infinity ]
	inside_sh 'rm -rf /var/lib/pageclear/* /etc/pageclear/policy.yaml'
	override CPUQuota=50%
	run -0 inside systemctl start calibrd
	if ! inside_sh 'cat /sys/fs/cgroup/cpu.max /sys/fs/cgroup/system.slice/calibrd.service/cpu.max \
		/sys/fs/cgroup/cpu*/system.slice/calibrd.service/cpu.cfs_quota_us 2>/dev/null' | grep -q '^[0-9]'; then
		no_override
		skip "no control group with a CPU quota in the container"
	fi
	until_true has_ended
	no_override
	run -0 database "SELECT coalesce(surroundings, '') FROM calibration"
	holds "quota_cpus=0.5"
	journal warning
}

has_ended() {
	[ "$(database "SELECT count(*) FROM calibration WHERE state != 'running'" 2>/dev/null)" -ge 1 ]
}
