#!/usr/bin/env bats
# Ten years: programs of version 0.1 run with whatever the library becomes, and what it becomes is refused or answered as
# the header says. A later version is made up: today's with one more member in each struct and one more function.

# shellcheck disable=SC2030,SC2031,SC2154

load common

setup_file() {
	cd "$BATS_TEST_DIRNAME/../.." || return 1
	export B=${B:-build} CC=${CC:-gcc} W=$BATS_FILE_TMPDIR PAGECLEAR_POLICY=builtin
	mkdir "$W/today"
	ln -s "$(realpath "$B/libpolicy.so.0")" "$W/today/libpolicy.so.0"
	later_library
	small_host_policy
	compile old -Itests/abi/0.1 tests/abi/old.c "$B/libpolicy.so"
	compile old-static -Itests/abi/0.1 tests/abi/old.c "$B/libpolicy.a" -lyaml
	compile new "-I$W/later/include" tests/abi/new.c "$B/libpolicy.so"
	compile new-function -DLATER "-I$W/later/include" tests/abi/new.c "$W/later/libpolicy.so.0"
}

setup() {
	cd "$BATS_TEST_DIRNAME/../.." || return 1
}

# compile PROGRAM ...
compile() {
	local program=$W/$1
	shift
	"$CC" -std=gnu11 -Wall -Wextra -Werror -O2 -o "$program" "$@"
}

# library FOLDER HEADER-SCRIPT FLAGS-OF-POLICY.C SOURCES...: today's library with another public header, which policy.c is
# compiled with, the only file that looks into the structs.
library() {
	local folder=$W/$1 script=$2 flags=$3 others
	shift 3
	mkdir -p "$folder/include/pageclear"
	sed "$script" libpolicy/include/pageclear/policy.h >"$folder/include/pageclear/policy.h"
	! cmp -s "$folder/include/pageclear/policy.h" libpolicy/include/pageclear/policy.h || return 1
	[ -e "$folder/map" ] || cp libpolicy/libpolicy.map "$folder/map"
	others=$(find "$B/pic/kernels" "$B/pic/libpolicy" -name '*.o' ! -name policy.o ! -name 'table-faulty.o')
	# shellcheck disable=SC2086
	"$CC" -std=gnu11 -O2 -g -fPIC -fvisibility=hidden -D_GNU_SOURCE -DPAGECLEAR_SHARED $flags "-I$folder/include" -I. \
		-c -o "$folder/policy.o" libpolicy/policy.c || return 1
	# shellcheck disable=SC2086
	"$CC" -std=gnu11 -O2 -g -fPIC -fvisibility=hidden "-I$folder/include" -shared -Wl,-soname,libpolicy.so.0 \
		"-Wl,--version-script=$folder/map" -Wl,-z,defs -o "$folder/libpolicy.so.0" "$folder/policy.o" $others "$@" -lyaml
}

later_library() {
	mkdir "$W/later"
	{
		cat libpolicy/libpolicy.map
		echo 'PAGECLEAR_0.2 { global: pageclear_later; } PAGECLEAR_0.1;'
	} >"$W/later/map"
	library later 's|^\tunsigned threads;|&\n\tsize_t later;|; s|^\tsize_t from, to;|&\n\tsize_t later;|
		s|^PAGECLEAR_API int pageclear_reload|PAGECLEAR_API size_t pageclear_later(void);\n&|' \
		-Dpageclear_policy_choose=choose_first tests/abi/later.c
}

# A policy that says something else than the built-in one, where the processor's name is known.
small_host_policy() {
	sed "s|AuthenticAMD 25/1/1|$(signature)|; s/clzero, chunk: 0/movnti, chunk: 65536/" \
		tests/data/policy/good/design.yaml >"$W/policy.yaml"
}

with() {
	local folder=$1
	shift
	LD_LIBRARY_PATH=$W/$folder "$@"
}

@test "all that 0.1 declares stands in today's header, word for word" {
	for header in tests/abi/0.1 libpolicy/include; do
		$CC -E -P -dD -I"$header" -include pageclear/policy.h -x c /dev/null | grep -i pageclear |
			sort >"$W/$(basename "$header").words"
	done
	[ -s "$W/0.1.words" ]
	run comm -23 "$W/0.1.words" "$W/include.words"
	[ "$output" = "" ]
}

@test "a program of 0.1 gets from today's library what it was built for" {
	run with today "$W/old"
	[ "$status" -eq 0 ]
	[[ $output == *$'\nsmall query: -22\nsmall choice: -22\nreload 0, status 1' ]]
	[ "$(getconf LONG_BIT)" -ne 64 ] || [[ $output == *$'\n18446744073709551615 0 0: libc 0 [0, 18446744073709551615) size 48\n'* ]]
	[ "$("$W/old-static")" = "$output" ]
}

@test "a program of 0.1 gets the same from a later library" {
	[ "$(with today "$W/old")" = "$(with later "$W/old")" ]
	need_x86
	run with today "$W/old" "$W/policy.yaml"
	[ "$status" -eq 0 ]
	[[ $output == *": movnti 65536 [2048, "* ]]
	[ "$(with later "$W/old" "$W/policy.yaml")" = "$output" ]
}

@test "a later program is told what today's library does not know" {
	run with today "$W/new"
	[ "$status" -eq 0 ]
	[ "${lines[0]}" = "asks nothing new: 0, later 0, size kept" ]
	[ "${lines[1]}" = "asks something new: -7, choice left alone" ]
}

@test "a later program gets all from a later library" {
	run with later "$W/new-function"
	[ "$status" -eq 0 ]
	[ "${lines[0]}" = "asks nothing new: 0, later 1000, size kept" ]
	[ "${lines[1]}" = "asks something new: 0, later 1007" ]
	[[ ${lines[2]} == "one more function: "* ]]
}

@test "a later program that needs a later function does not start with today's library" {
	run with today "$W/new-function"
	[ "$status" -ne 0 ]
	[[ $output == *"PAGECLEAR_0.2' not found"* ]]
}

# --- the checked-in dump ---------------------------------------------------------------------------------------------

need_abidiff() {
	command -v abidiff >/dev/null || skip "no abidiff: package abigail-tools"
	[ "$(uname -m)" = x86_64 ] || skip "the dump is of x86-64"
	readelf -S "$B/libpolicy.so.0" | grep -q '\.debug_info' || skip "a library without debug information"
}

# differs LIBRARY: abidiff's verdict on the checked-in dump against it. Bit 2 of its status: a change; bit 3: one that no
# program survives.
differs() {
	tests/abi/dump "$1" >"$W/new.abi"
	run abidiff --harmless tests/abi/libpolicy.so.0.abi "$W/new.abi"
	echo "$1: $output"
}

# A change on purpose, which can only be growth: then tests/abi/dump makes the new file.
@test "the ABI is that of the checked-in dump" {
	need_abidiff
	differs "$B/libpolicy.so.0"
	[ "$status" -eq 0 ]
}

@test "the checked-in dump knows the public functions, and nothing of whoever built it" {
	[ "$(grep -c "<elf-symbol name='pageclear_.*version='PAGECLEAR_0.1'" tests/abi/libpolicy.so.0.abi)" -eq 9 ]
	run grep -nE "='/|comp-dir|filepath|pc_" tests/abi/libpolicy.so.0.abi
	[ "$output" = "" ]
}

@test "growth is told as growth: nothing that was there has moved" {
	need_abidiff
	differs "$W/later/libpolicy.so.0"
	[ "$status" -eq 4 ]
	[[ $output == *"0 Removed, 1 Changed, 1 Added function"* ]]
	[ "$(grep -c "'size_t later', at offset" <<<"$output")" -eq 2 ]
	[[ $output != *"offset changed"* && $output != *deletion* ]]
}

# is_seen NAME SCRIPT PART: a library with another header is told from today's, and how
is_seen() {
	library "$1" "$2" ""
	differs "$W/$1/libpolicy.so.0"
	[ $((status & 4)) -ne 0 ] && [[ $output == *"$3"* ]]
}

@test "what moved, and what was retyped, is seen" {
	need_abidiff
	is_seen swapped 's|^\tsize_t from, to;|\tsize_t to, from;|' "'size_t from' offset changed"
	is_seen between 's|^\tsize_t len; |\tsize_t new;\n&|' "'size_t len' offset changed"
	is_seen narrower 's|^\tunsigned intent;|\tunsigned short intent, more;|' "type name changed from 'unsigned int' to 'unsigned short int'"
}

@test "a function less is seen" {
	need_abidiff
	tests/abi/dump "$B/libpolicy.so.0" | sed "/elf-symbol name='pageclear_reload'/d
		/<function-decl name='pageclear_reload'/,/<.function-decl>/d" >"$W/less.abi"
	run abidiff tests/abi/libpolicy.so.0.abi "$W/less.abi"
	[ $((status & 8)) -ne 0 ]
	[[ $output == *pageclear_reload* ]]
}
