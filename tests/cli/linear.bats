#!/usr/bin/env bats
# The reader of policy.yaml takes instructions in proportion to what it reads, libyaml's included, whatever the text:
# counted by valgrind, on doubling lengths, so no clock has a say. $PAGECLEAR_PARSE_MOST: the longest.

# shellcheck disable=SC2030,SC2031,SC2154

setup_file() {
	cd "$BATS_TEST_DIRNAME/../.." || return 1
	export B=${B:-build} W=$BATS_FILE_TMPDIR
	command -v valgrind >/dev/null || return 0
	! nm "$B/tool-parse_cost" | grep -qE '__(asan|tsan)_init' || return 0
	most=${PAGECLEAR_PARSE_MOST:-16384}
	PAGECLEAR_POLICY=builtin valgrind --tool=callgrind --callgrind-out-file="$W/out" --zero-before=parse_measured \
		--dump-after=parse_measured "$B/tool-parse_cost" $((most / 4)) "$most" >"$W/calls" 2>"$W/log" || {
		cat "$W/log"
		return 1
	}
	# A file a call, numbered: shape, length, result, instructions.
	i=0
	while read -r line; do
		i=$((i + 1))
		printf '%s\t%s\n' "$line" "$(sed -n 's/^totals: //p' "$W/out.$i")"
	done <"$W/calls" >"$W/costs"
}

setup() {
	[ -e "$W/costs" ] || skip "no valgrind, or a program that can't run in it"
}

# Which shapes take more than FACTOR times the instructions, and 100,000, for twice the length.
steeper_than() {
	awk -F'\t' -v factor="$1" '$1 == name && $4 > factor * cost + 100000 {
		print $1 ": " cost " instructions for " len " bytes, " $4 " for " $2 }
		{ name = $1; len = $2; cost = $4 }' "$W/costs" | grep -v "^libyaml alone: "
}

@test "every shape and length was counted" {
	[ "$(wc -l <"$W/costs")" -ge 100 ]
	run grep -vP '\t[0-9]+\t-?[0-9]+\t[0-9]+$' "$W/costs"
	[ "$output" = "" ]
}

@test "for twice the length, twice the instructions at most" {
	run steeper_than 2.2
	[ "$output" = "" ]
}

@test "no more than 2000 instructions a byte, from 16 KiB on" {
	run awk -F'\t' '$1 != "libyaml alone" && $2 >= 16384 && $4 > 2000 * $2' "$W/costs"
	[ "$output" = "" ]
}

# Or all of the above would say nothing.
@test "libyaml alone is seen to take the square" {
	run awk -F'\t' '$1 == "libyaml alone" { if (cost && $4 > 3 * cost) steep++; cost = $4 } END { print steep + 0 }' "$W/costs"
	[ "$output" -ge 1 ]
}

@test "long policies are among what was read, and taken" {
	for shape in "unknown keys" "tables for later" conditions; do
		[ "$(grep -cP "^$shape\t[0-9]+\t0\t" "$W/costs")" -eq 3 ]
	done
}
