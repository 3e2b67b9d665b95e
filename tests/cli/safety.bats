#!/usr/bin/env bats
# libpolicy in processes that make it hard: loaded and closed in threads that fork, two versions at once, beneath an
# allocator that calls it, in programs that have shut themselves in before it starts, on other CPUs.

# bats runs each test, and `run`, in a shell of its own, and sets output and lines.
# shellcheck disable=SC2030,SC2031,SC2154

bats_require_minimum_version 1.5.0

setup_file() {
	cd "$BATS_TEST_DIRNAME/../.." || return 1
	export B=${B:-build} CC=${CC:-gcc} T=$BATS_FILE_TMPDIR
	unset PAGECLEAR_POLICY LD_PRELOAD
	FLAGS="-std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -Ilibpolicy/include"
	export FLAGS
	ulimit -c 0
	mkdir "$T/ours"
	ln -s "$(realpath "$B/libpolicy.so")" "$T/ours/libpolicy.so.0"
	write_policies
}

setup() {
	cd "$BATS_TEST_DIRNAME/../.." || return 1
	ulimit -c 0
}

# compile OUTPUT ARGUMENTS...
compile() {
	# shellcheck disable=SC2086
	$CC $FLAGS -o "$T/$1" "${@:2}"
}

# cpu, rules: a policy whose every table has them.
policy_for() {
	local when
	printf 'format: 1\ngeneration: 5\nquality: good\nhost: {topology: "0123456789ab", arch: "%s", cpus: ["%s"]}\nclear:\n' \
		"$(uname -m)" "$1"
	for when in "hot 1, prior: unknown" "hot 1, prior: cached" "hot 1, prior: flushed" "cold 1, prior: unknown" \
		"cold 1, prior: cached" "cold 1, prior: flushed" "scrub 1"; do
		printf '%s\n' "- {intent: ${when%% *}, when: {threads: ${when#* }}, rules: [$2]}"
	done
}

# A policy made for nobody tells by the status what this CPU is called: so it does under an emulator.
write_policies() {
	policy_for "Nobody 1/1/1" "{from: 0, kernel: libc}" >"$T/foreign.yaml"
	compile status -x c - -x none "$B/libpolicy.so" "-Wl,-rpath,$T/ours" <<-'END'
		#include <pageclear/policy.h>
		#include <stdio.h>
		int main(void) { char text[1600]; pageclear_status(text, sizeof(text)); return puts(text) < 0; }
	END
	CPU=$(PAGECLEAR_POLICY=$T/foreign.yaml "$T/status" | sed -n 's/.*made for Nobody 1\/1\/1, this is \([^;]*\).*/\1/p')
	[ -n "$CPU" ]
	export CPU
	policy_for "$CPU" "{from: 0, kernel: libc}, {from: 65536, kernel: t_wrong}" >"$T/marks.yaml"
	rules="{from: 0, kernel: libc}, {from: 300, kernel: stosb}, {from: 1000, kernel: avx2}, {from: 2000, kernel: avx512}"
	rules+=", {from: 3000, kernel: movnti}, {from: 5000, kernel: avxnt}, {from: 8000, kernel: avx512nt}"
	rules+=", {from: 12000, kernel: clzero, chunk: 4096}, {from: 20000, kernel: movdir64b}, {from: 40000, kernel: sse2nt}"
	export rules
	policy_for "$CPU" "$rules" >"$T/all.yaml"
}

# --- loading ---------------------------------------------------------------------------------------------------------

@test "loaded and closed in a loop, in threads, while others fork" {
	compile loader tests/safety/loader.c -pthread
	for policy in builtin "$T/all.yaml"; do
		# Without caches of freed blocks, which count as used.
		GLIBC_TUNABLES=glibc.malloc.tcache_count=0 PAGECLEAR_POLICY=$policy run "$T/loader" "${PAGECLEAR_LOADS:-20}" "$(realpath "$B/libpolicy.so")"
		[ "$status" -eq 0 ]
		[ "$output" = "done" ]
	done
}

@test "a fork handler that is left behind would be noticed" {
	compile loader tests/safety/loader.c -pthread
	compile libstale.so -shared -fPIC tests/safety/stale.c
	run "$T/loader" --stale "$T/libstale.so"
	[ "$status" -eq 1 ]
	[[ $output == *"a child after it has gone ended with status"* ]]
}

# --- two copies ------------------------------------------------------------------------------------------------------

@test "no call inside the library goes by a public name" {
	run readelf -rW "$B/libpolicy.so"
	[ "$status" -eq 0 ]
	[[ $output == *" yaml_parser_parse"* ]]
	[[ $output != *pageclear_* ]]
}

# Another version: one more public name, and kernels that leave their mark; shared, and as an archive.
build_other() {
	local flags="-std=gnu11 -O1 -I. -Ilibpolicy/include -D_GNU_SOURCE -fvisibility=hidden -DPC_TEST_KERNELS" version
	version='-DPAGECLEAR_VERSION="0.0.9"'
	[ ! -e "$T/other" ] || return 0
	mkdir "$T/other"
	sed 's/^local:/\tpageclear_other;\n&/' libpolicy/libpolicy.map >"$T/other/map"
	printf '%s\n' '__attribute__((visibility("default"))) int pageclear_other(void);' 'int pageclear_other(void) { return 9; }' \
		>"$T/other/other.c"
	# shellcheck disable=SC2086
	{
		$CC $flags "$version" -DPAGECLEAR_SHARED -fPIC -shared -Wl,-soname,libpolicy.so.0 \
			"-Wl,--version-script=$T/other/map" -Wl,-z,defs -o "$T/other/libpolicy.so.0" "$T/other/other.c" \
			kernels/*.c libpolicy/*.c -lyaml
		$CC $flags "$version" -fPIC -r -nostdlib -o "$T/other/libpolicy.o" kernels/*.c libpolicy/*.c
	}
	objcopy --wildcard --keep-global-symbol='pageclear_*' "$T/other/libpolicy.o"
	$CC -fPIC -r -nostdlib -o "$T/ours/libpolicy.o" "$B/libpolicy.o"
}

# who is linked in and how, who is in the library, which one
two_copies() {
	run env PAGECLEAR_POLICY="$T/marks.yaml" LD_BIND_NOW="$4" "$T/$1" "${1%%-*}" "$2" "$3"
	[ "$status" -eq 0 ] && [ "$output" = "done" ] && return
	echo "$1, with $2 in $3: $output"
	return 1
}

@test "two versions in one process each serve themselves" {
	build_other
	local who other now
	for who in ours other; do
		compile "$who-archive" tests/safety/copies.c "$T/$who/libpolicy.o" -lyaml
		compile "$who-exporting" -rdynamic tests/safety/copies.c "$T/$who/libpolicy.o" -lyaml
		compile "$who-shared" tests/safety/copies.c "$T/$who/libpolicy.so.0" "-Wl,-rpath,$T/$who"
		compile "plugin-shared-$who.so" -DPLUGIN -shared -fPIC tests/safety/copies.c "$T/$who/libpolicy.so.0" "-Wl,-rpath,$T/$who"
	done
	# A library with an archive inside: another version's, and that of the build tree as it is installed.
	compile plugin-archive-other.so -DPLUGIN -shared -fPIC tests/safety/copies.c "$T/other/libpolicy.o" -lyaml
	compile plugin-archive-ours.so -DPLUGIN -shared -fPIC tests/safety/copies.c "$B/libpolicy.a" -lyaml
	for now in "" 1; do
		for who in ours:other other:ours; do
			other=${who#*:} who=${who%:*}
			two_copies "$who-archive" "$other" "$T/$other/libpolicy.so.0" "$now"
			two_copies "$who-exporting" "$other" "$T/$other/libpolicy.so.0" "$now"
			two_copies "$who-shared" "$other" "$T/$other/libpolicy.so.0" "$now"
			two_copies "$who-archive" "$other" "$T/plugin-shared-$other.so" "$now"
		done
		two_copies ours-shared other "$T/plugin-archive-other.so" "$now"
		two_copies ours-archive other "$T/plugin-archive-other.so" "$now"
		two_copies other-shared ours "$T/plugin-archive-ours.so" "$now"
	done
}

@test "the loader binds no name of one version to the other" {
	build_other
	compile ours-archive tests/safety/copies.c "$T/ours/libpolicy.o" -lyaml
	compile ours-shared tests/safety/copies.c "$T/ours/libpolicy.so.0" "-Wl,-rpath,$T/ours"
	# shellcheck disable=SC2143 # bats ignores a bare "!"
	for program in archive shared; do
		run env LD_DEBUG=bindings LD_BIND_NOW=1 PAGECLEAR_POLICY="$T/marks.yaml" \
			"$T/ours-$program" ours other "$T/other/libpolicy.so.0"
		[ "$status" -eq 0 ]
		[[ $output == *"binding file $T/other/libpolicy.so.0 "* ]]
		[ -z "$(grep -E "binding file [^ ]*other/libpolicy.so.0 .* to [^ ]*ours[^ ]* .*(pageclear_|pc_)" <<<"$output")" ]
		[ -z "$(grep -E "binding file [^ ]*/ours[^ ]* .* to [^ ]*other/libpolicy.so.0 .*normal symbol" <<<"$output")" ]
	done
}

# --- beneath ---------------------------------------------------------------------------------------------------------

# program: every policy, and its words about itself
allocates() {
	local policy
	for policy in builtin "$T/all.yaml" "$T/foreign.yaml" /nowhere ""; do
		run --separate-stderr env PAGECLEAR_POLICY="$policy" LD_PRELOAD="$2" "$T/$1"
		[ "$status" -eq 0 ] && [ "$output" = "$3" ] && continue
		echo "$1, $policy: exit status $status: $output $stderr"
		return 1
	done
}

@test "an allocator that clears by it, before, during and after its start" {
	compile liballocator.so -fno-builtin -shared -fPIC tests/safety/allocator.c "$B/libpolicy.so" "-Wl,-rpath,$T/ours" -pthread
	compile below -fno-builtin -DPROGRAM tests/safety/allocator.c "$T/liballocator.so" "$B/libpolicy.so" \
		"-Wl,-rpath,$T:$T/ours" -pthread
	compile within -fno-builtin -DPROGRAM -DTOGETHER tests/safety/allocator.c "$B/libpolicy.so" "-Wl,-rpath,$T/ours" -pthread
	compile archive -fno-builtin -DPROGRAM -DTOGETHER tests/safety/allocator.c "$B/libpolicy.a" -lyaml -pthread
	compile libfirst.so -fno-builtin -shared -fPIC -Wl,-z,initfirst tests/safety/first.c
	allocates below "" "calls before main: some, early: none, reentered 0, dirty 0"
	allocates within "" "calls before main: some, early: none, reentered 0, dirty 0"
	allocates archive "" "calls before main: some, early: some, reentered 0, dirty 0"
	allocates below "$T/libfirst.so" "first: libpolicy has not started
calls before main: some, early: none, reentered 0, dirty 0"
	allocates within "$T/libfirst.so" "first: libpolicy has not started
calls before main: some, early: none, reentered 0, dirty 0"
}

@test "that allocator before programs that know nothing of it" {
	compile liballocator.so -fno-builtin -shared -fPIC tests/safety/allocator.c "$B/libpolicy.so" "-Wl,-rpath,$T/ours" -pthread
	for policy in builtin "$T/all.yaml"; do
		export PAGECLEAR_POLICY=$policy
		[ "$(LD_PRELOAD=$T/liballocator.so ls -d /)" = / ]
		[ "$(LD_PRELOAD=$T/liballocator.so sh -c 'ls -d / | sort')" = / ]
		[ "$(LD_PRELOAD=$T/liballocator.so python3 -c 'import json; print(json.dumps(list(range(3))))')" = "[0, 1, 2]" ]
	done
}

# --- shut in before it starts ----------------------------------------------------------------------------------------

# Only what cannot be linked here is skipped: a fault of the program's own is none.
alone() {
	# shellcheck disable=SC2086
	$CC $FLAGS -fsyntax-only tests/safety/alone.c || return 1
	[ -x "$T/alone" ] || compile alone -static tests/safety/alone.c "$B/libpolicy.a" -lyaml 2>"$T/alone.log" ||
		skip "NOT TRIED: no static libyaml or libc"
	run env -i PAGECLEAR_POLICY="$T/all.yaml" "$@"
	[ "$status" -ne 77 ] || [ "$1" = sh ] || skip "NOT TRIED: not possible here"
}

@test "it starts where it may open no file, and says so" {
	alone "$T/alone" report
	[ "$status" -eq 0 ]
	[[ $output == *"all.yaml: generation 5"* ]]
	alone "$T/alone" opening
	[ "$status" -eq 1 ]
	[[ $output == "built-in policy ("*"all.yaml: Operation not permitted"* ]]
}

@test "it starts without a descriptor to be had, and says so" {
	alone "$T/alone" descriptors
	[ "$status" -eq 1 ]
	[[ $output == "built-in policy ("*"all.yaml: Too many open files"* ]]
}

@test "it starts with hardly any memory, and says so" {
	local kib said=0 whole=0
	# The kernel doesn't start it at all with less than its own data, nor libc without some for itself.
	for ((kib = 64; kib <= 512; kib += 16)); do
		# bats warns of 127, which is libc's.
		# shellcheck disable=SC2016
		alone sh -c '"$@"; code=$?; [ $code -ne 127 ] || code=139; exit $code' sh "$T/alone" memory "$kib"
		case $status in
		139 | 77) continue ;;
		0) whole=$((whole + 1)) ;;
		1)
			[[ $output == "libc only; "* || $output == *"all.yaml: "*emory* ]]
			said=$((said + 1))
			;;
		*) false ;;
		esac
	done
	echo "$said without, $whole with"
	[ "$said" -gt 0 ]
	[ "$whole" -gt 0 ]
}

@test "it starts with standard streams closed, and takes none of them" {
	alone "$T/alone" streams 0
	[ "$status" -eq 0 ]
	alone "$T/alone" streams 1
	[ "$status" -eq 1 ]
}

@test "it starts in a root with nothing but itself, and with its policy" {
	[ "$(id -u)" -eq 0 ] || skip "NOT TRIED: takes root"
	alone "$T/alone" report
	mkdir -p "$T/root"
	cp "$T/alone" "$T/root"
	run env -i "$(command -v chroot)" "$T/root" /alone report
	[ "$status" -eq 1 ]
	[[ $output == *"not /run/pageclear/policy.yaml: No such file"* ]]
	mkdir -p "$T/root/run/pageclear"
	cp "$T/all.yaml" "$T/root/run/pageclear/policy.yaml"
	run env -i "$(command -v chroot)" "$T/root" /alone report
	[ "$status" -eq 0 ]
	[[ $output == *"/run/pageclear/policy.yaml: generation 5"* ]]
}

# --- other CPUs ------------------------------------------------------------------------------------------------------

@test "on other CPUs it believes no policy of this one, and runs what they announce" {
	[ "$(uname -m)" = x86_64 ] || skip "NOT TRIED: the models are x86"
	command -v qemu-x86_64-static >/dev/null || skip "NOT TRIED: no qemu-x86_64-static (package qemu-user-static)"
	alone "$T/alone" report
	local model signature
	for model in qemu64 core2duo Nehalem Haswell Skylake-Server EPYC EPYC-Milan max max,-avx max,-avx2 max,-xsave \
		max,vendor=HygonGenuine,-sse4.2; do
		run env -i PAGECLEAR_POLICY="$T/foreign.yaml" qemu-x86_64-static -cpu "$model" "$T/alone" report
		signature=$(sed -n 's/.*made for Nobody 1\/1\/1, this is \([^;]*\).*/\1/p' <<<"$output")
		echo "$model: $signature"
		[ "$status" -eq 1 ]
		[ -n "$signature" ]
		policy_for "$signature" "$rules" >"$T/model.yaml"
		run env -i PAGECLEAR_POLICY="$T/model.yaml" qemu-x86_64-static -cpu "$model" "$T/alone" report
		echo "$output"
		[ "$status" -eq 0 ]
		[[ $output == *"model.yaml: generation 5"*"libc stands in for kernels that this CPU or library lacks: "*avx512* ]]
		[ "$signature" = "$CPU" ] && continue
		run env -i PAGECLEAR_POLICY="$T/all.yaml" qemu-x86_64-static -cpu "$model" "$T/alone" report
		[ "$status" -eq 1 ]
		[[ $output == *"made for $CPU, this is $signature"* ]]
	done
}
