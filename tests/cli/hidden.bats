#!/usr/bin/env bats
# Hosts and sandboxes that hide pieces of /proc and /sys: what isn't told is unknown, never an error. In private mount
# namespaces, on calibrd with a simulated meter, and once on the real one.

# bats sets output; calibrd_common sets the rest; the commands of `apart` have arguments of their own.
# shellcheck disable=SC2016,SC2153,SC2154

load calibrd_common

setup_file() {
	make_folder
	cp "$B/calibrd-fast" "$W/"
	mkdir "$W/empty"
	: >"$W/nothing"
	D=$W/known/calibrd.db P=$W/known/policy.yaml CALIBRD=$W/calibrd-fast once >"$W/known.log" 2>&1
}

setup() {
	need_namespace
	new_folder
}

teardown_file() {
	rm -rf "$W"
}

# hidden COMMANDS [PROGRAM]: measures where these commands have hidden something; twice, so that what was found out once
# is found again.
hidden() {
	run -0 apart '
		empty=$1/empty nothing=$1/nothing
		'"$1"'
		"$2" --once --effort quick --database "$3" --policy "$4"
		"$2" --once --effort quick --database "$3" --policy "$4"
	' hide "$W" "${2:-$W/calibrd-fast}" "$D" "$P"
	holds "published generation 1"
	lacks "error:"
	lacks "warning:"
}

# Nothing is measured a second time, nothing is different.
settled() {
	holds "is up to date"
	[ "$(calibrations "$D")" -eq 1 ]
}

@test "of /proc only processes (ProcSubset=pid): the same topology" {
	hidden 'mount -t proc -o subset=pid proc /proc 2>/dev/null || { echo "no subset=pid here: published generation 1 is up to date"; exit 0; }'
	[[ $output != *"no subset=pid here"* ]] || skip "this kernel's proc knows no subset=pid"
	settled
	[ "$(topology "$P")" = "$(topology "$W/known/policy.yaml")" ]
}

@test "single files of /proc, pressure and sysctl: the same topology" {
	hidden 'for f in cpuinfo stat loadavg meminfo version; do mount --bind $nothing /proc/$f; done
		[ ! -e /proc/pressure ] || mount --bind $empty /proc/pressure
		mount --bind $empty /proc/sys'
	settled
	[ "$(topology "$P")" = "$(topology "$W/known/policy.yaml")" ]
}

@test "control groups: the same topology" {
	hidden 'mount --bind $empty /sys/fs/cgroup'
	settled
	[ "$(topology "$P")" = "$(topology "$W/known/policy.yaml")" ]
}

@test "CPUs and caches, nodes, all of /sys: another topology, with what is unknown" {
	for folder in /sys/devices/system/cpu /sys/devices/system/node /sys; do
		[ -e "$folder" ] || continue
		new_folder
		hidden "mount --bind \$empty $folder"
		settled
		[ "$(topology "$P")" != "$(topology "$W/known/policy.yaml")" ]
		ask "$D" "SELECT key FROM topology" | grep -q unknown
	done
}

@test "all of it at once, on the real meter: a policy all the same" {
	run apart '
		mount --bind "$1/empty" /sys
		mount -t proc -o subset=pid proc /proc 2>/dev/null || mount --bind "$1/nothing" /proc/meminfo
		"$2" --once --effort quick --database "$3" --policy "$4"
	' hide "$W" "$CALIBRD" "$D" "$P"
	skip_if_too_busy
	[ "$status" -eq 0 ]
	holds "published generation 1"
	lacks "error:"
	"$CTL" --policy "$P" show
}
