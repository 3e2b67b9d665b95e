#!/usr/bin/env bats
# A host without libcpuid, or with a broken one: only the child that asks it would load it.

# bats sets output; the commands of `apart` have arguments of their own.
# shellcheck disable=SC2016,SC2154

load calibrd_common

setup_file() {
	make_folder
}

teardown_file() {
	rm -rf "$W"
}

library() {
	ldconfig -p | sed -n 's/.*libcpuid\.so\.[0-9]* .*=> //p' | head -n 1
}

id_of() {
	sed -n 's/^topology *//p' <<<"$1"
}

@test "nothing but that child loads libcpuid" {
	[ "$(uname -m)" = x86_64 ] || skip "libcpuid is asked on x86 alone"
	run -0 readelf -d "$CALIBRD"
	holds libsystemd
	lacks libcpuid
}

@test "an unusable libcpuid is said with its reason, and the topology is the same" {
	[ "$(uname -m)" = x86_64 ] || skip "libcpuid is asked on x86 alone"
	need_namespace
	local whole
	run -0 "$CTL" topology
	whole=$(id_of "$output")
	[ -n "$whole" ]
	run -0 apart 'mount --bind /dev/null "$1"; "$2" topology' none "$(library)" "$CTL"
	[ "$(id_of "$output")" = "$whole" ]
	holds "libcpuid can't be asked: "
	holds "$(library | xargs basename)"
}
