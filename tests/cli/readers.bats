#!/usr/bin/env bats
# Programs that read the policy at every moment of its being published: none ever sees an error or half of one.
# PAGECLEAR_PUBLICATIONS says how many publications they live through.

# bats sets output.
# shellcheck disable=SC2154

load calibrd_common

setup_file() {
	make_folder
}

teardown_file() {
	rm -rf "$W"
}

# In memory where that can be had: on a slow disk so many times an fsync takes an hour, and shows nothing more.
in_memory() {
	if [ -d /dev/shm ] && [ -w /dev/shm ]; then
		mktemp -d /dev/shm/pageclear-XXXXXX
	else
		mktemp -d "$W/XXXXXX"
	fi
}

@test "64 readers in a tight loop through publications: none sees an error" {
	local folder count=${PAGECLEAR_PUBLICATIONS:-500}
	folder=$(in_memory)
	run "$B/tool-policy_readers" "$folder" 64 "$count"
	rm -rf "$folder"
	echo "# $count publications: $output" >&3
	[ "$status" -eq 0 ]
	[[ $output =~ ^([0-9]+)\ opened,\ ([0-9]+)\ even,\ ([0-9]+)\ odd,\ 0\ failed ]]
	[ "${BASH_REMATCH[1]}" -ge 64 ]
	[ "${BASH_REMATCH[2]}" -gt 0 ]
	[ "${BASH_REMATCH[3]}" -gt 0 ]
}
