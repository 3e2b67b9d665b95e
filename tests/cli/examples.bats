#!/usr/bin/env bats
# The programs of examples/ build without a warning and do what they say: in C and C++, with both compilers, against the
# build tree and against what `make install` leaves, shared and static; and nothing in a policy file harms the last one.

# bats runs each test, and `run`, in a shell of its own.
# shellcheck disable=SC2030,SC2031,SC2154

load common

setup_file() {
	cd "$BATS_TEST_DIRNAME/../.." || return 1
	export B=${B:-build} W=$BATS_FILE_TMPDIR
	mkdir "$W/lib"
	ln -s "$(realpath "$B/libpolicy.so")" "$W/lib/libpolicy.so.0"
	export PAGECLEAR_POLICY=builtin
	unset MAKEFLAGS MAKELEVEL MFLAGS
}

setup() {
	cd "$BATS_TEST_DIRNAME/../.." || return 1
	export LD_LIBRARY_PATH=$W/lib
}

# build COMPILER FLAGS... -- LIBRARIES...: all examples into $W/bin
build() {
	local name compiler=()
	command -v "$1" >/dev/null || skip "no $1"
	while [ "$1" != -- ]; do compiler+=("$1") && shift; done
	shift
	mkdir -p "$W/bin"
	for name in arena scrubber populate embed; do
		"${compiler[@]}" -pedantic -Wall -Wextra -Wconversion -Wshadow -Werror -O2 -Ilibpolicy/include -pthread \
			-o "$W/bin/$name" "examples/$name.c" -x none "$@" || return 1
	done
}

# All of them, from a folder.
run_all() {
	[ "$("$1/arena")" = "arena: 10 requests, 0 bytes were not zero; wiped 10504960 bytes, 0 are left" ] || return 1
	[ "$("$1/scrubber")" = "scrubber: 1000 pages taken, 0 of them not clean" ] || return 1
	[ "$("$1/populate")" = "populate: 4 threads, 8 ranges each, 0 bytes are not as they should be" ] || return 1
	run "$1/embed" /nowhere
	[ "$status" -eq 0 ]
	[ "${lines[0]}" = "embed: built-in policy (own: No such file or directory)" ]
	[ "${lines[-1]}" = "embed: 0 clears of 4 went wrong" ]
	[[ $output == *$'\nprocess: not calibrated ('* ]]
}

@test "C11, gcc, shared" {
	build gcc -std=c11 -Wstrict-prototypes -Wmissing-prototypes -- "$B/libpolicy.so"
	run_all "$W/bin"
}

@test "C11, clang, archive" {
	build clang -std=c11 -Wstrict-prototypes -Wmissing-prototypes -- "$B/libpolicy.a" -lyaml
	LD_LIBRARY_PATH='' run_all "$W/bin"
}

@test "C++17, g++, archive" {
	build g++ -x c++ -std=c++17 -- "$B/libpolicy.a" -lyaml
	LD_LIBRARY_PATH='' run_all "$W/bin"
}

@test "C++20, clang++, shared" {
	build clang++ -x c++ -std=c++20 -- "$B/libpolicy.so"
	run_all "$W/bin"
}

# What is installed, below $W/root; once.
install_it() {
	[ -e "$W/root" ] || make -s B="$B" DESTDIR="$W/root" install >"$W/install.log" 2>&1 || {
		cat "$W/install.log"
		return 1
	}
	command -v pkg-config >/dev/null || skip "no pkg-config"
	export PKG_CONFIG_PATH=$W/root/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$W/root
}

@test "their own Makefile, against the installed shared library" {
	install_it
	LD_LIBRARY_PATH=$W/root/usr/lib make -s -C examples B="$W/shared" CFLAGS="-O2 -Wall -Wextra -Werror" check
	run readelf -d "$W/shared/arena"
	[[ $output == *"[libpolicy.so.0]"* ]]
	LD_LIBRARY_PATH=$W/root/usr/lib run_all "$W/shared"
}

@test "their own Makefile, against the installed archive" {
	install_it
	LD_LIBRARY_PATH='' make -s -C examples B="$W/static" STATIC=1 CFLAGS="-O2 -Wall -Wextra -Werror" check
	run readelf -d "$W/static/arena"
	[[ $output != *libpolicy* ]]
	LD_LIBRARY_PATH='' run_all "$W/static"
}

@test "every function has a manual page where it was installed" {
	install_it
	names=$(sed -n 's/^\t\(pageclear_[a-z_]*\);$/\1/p' libpolicy/libpolicy.map)
	[ "$(wc -w <<<"$names")" -ge 9 ]
	for name in libpolicy $names; do
		grep -qE "^\.Nm $name( ,)?$" "$W/root/usr/share/man/man3/$name.3"
		[ "$name" = libpolicy ] || grep -qE "^\.F[no] $name( |$)" "$W/root/usr/share/man/man3/$name.3"
	done
	# And none of another name.
	[ "$(find "$W/root/usr/share/man/man3" -name '*.3' | wc -l)" -eq $(($(wc -w <<<"$names") + 1)) ]
}

@test "their own Makefile says so where there is no libpolicy" {
	command -v pkg-config >/dev/null || skip "no pkg-config"
	PKG_CONFIG_LIBDIR=/nowhere PKG_CONFIG_PATH='' run make -s -C examples B="$W/none"
	[ "$status" -ne 0 ]
	[[ $output == *"pkg-config finds no libpolicy"* ]]
}

# embed FILE: whatever it is, four clears work, and the first line says what became of it
embeds() {
	run "$W/embed" "$1"
	echo "$1: $output"
	[ "$status" -eq 0 ] && [ "${lines[0]}" = "embed: $2" ] && [ "${lines[-1]}" = "embed: 0 clears of 4 went wrong" ]
}

need_embed() {
	[ -x "$W/embed" ] || gcc -O2 -Ilibpolicy/include -o "$W/embed" examples/embed.c "$B/libpolicy.so"
}

@test "an embedded policy may be anything" {
	need_embed
	: >"$W/empty"
	head -c 65537 /dev/zero | tr '\0' '#' >"$W/large"
	head -c 40000 /dev/urandom >"$W/noise"
	mkfifo "$W/pipe"
	ln -s loop "$W/loop"
	embeds "$W/empty" "built-in policy (own: malformed, or no regular file)"
	embeds "$W/large" "built-in policy (own: larger than 64 KiB)"
	embeds "$W/noise" "built-in policy (own: malformed, or no regular file)"
	embeds "$W/pipe" "built-in policy (own: malformed, or no regular file)"
	embeds "$W" "built-in policy (own: malformed, or no regular file)"
	embeds "$W/loop" "built-in policy (own: Too many levels of symbolic links)"
	embeds "" "built-in policy (own: No such file or directory)"
	embeds tests/data/policy/bad/format-newer.yaml "built-in policy (own: written for a newer libpolicy)"
	sed 's/AuthenticAMD 25/AuthenticAMD 2/' tests/data/policy/good/design.yaml >"$W/other"
	embeds "$W/other" "built-in policy (own: made for another CPU)"
}

@test "an embedded policy is used where it fits, unknown kernels and all" {
	need_embed
	need_x86
	sed "s|AuthenticAMD 25/1/1|$(signature)|; s/clzero/from_the_future/" tests/data/policy/good/design.yaml >"$W/own"
	embeds "$W/own" "own policy"
	[[ $output == *"by libc"* ]]
}

@test "no file of the readers' tests and of the fuzzers harms who embeds it" {
	need_embed
	n=0
	for file in tests/data/policy/bad/* tests/fuzz/corpus/*/*; do
		run "$W/embed" "$file"
		[ "$status" -eq 0 ] || {
			printf '%s: exit %s\n%s\n' "$file" "$status" "$output"
			return 1
		}
		n=$((n + 1))
	done
	[ "$n" -gt 70 ]
}
