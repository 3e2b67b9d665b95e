#!/usr/bin/env bats
# What the library shows to the world: the public functions and nothing else, shared or static, together or alone.

setup() {
	cd "$BATS_TEST_DIRNAME/../.." || return 1
	B=${B:-build}
	CC=${CC:-gcc}
	public=$(sed -n 's/^\t\(pageclear_[a-z_]*\);$/\1/p' libpolicy/libpolicy.map | sort)
	ln -sf "$(realpath "$B/libpolicy.so")" "$BATS_TEST_TMPDIR/libpolicy.so.0"
}

@test "the map lists what the header declares" {
	declared=$(sed -n 's/^PAGECLEAR_API .*\b\(pageclear_[a-z_]*\)(.*/\1/p' libpolicy/include/pageclear/policy.h | sort)
	[ -n "$public" ]
	[ "$declared" = "$public" ]
}

@test "the shared library exports the public functions, with a version" {
	exported=$(nm -D --defined-only "$B/libpolicy.so" | awk '$2 != "A" { print $3 }' | sort)
	[ "$exported" = "$(awk '{ print $1 "@@PAGECLEAR_0.1" }' <<<"$public")" ]
}

@test "the shared library is libpolicy.so.0 and needs libyaml and libc" {
	run readelf -d "$B/libpolicy.so"
	[[ $output == *"soname: [libpolicy.so.0]"* ]]
	needed=$(sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' <<<"$output" | grep -v '^ld-linux' | sort | tr '\n' ' ')
	[ "$needed" = "libc.so.6 libyaml-0.so.2 " ]
}

@test "the shared library has no text relocations and no executable stack" {
	run readelf -ldW "$B/libpolicy.so"
	[[ $output != *TEXTREL* ]]
	grep -q 'GNU_STACK.* RW ' <<<"$output"
}

@test "the shared library is at most 48 KiB stripped" {
	strip -o "$BATS_TEST_TMPDIR/stripped.so" "$B/libpolicy.so"
	[ "$(stat -c %s "$BATS_TEST_TMPDIR/stripped.so")" -le 49152 ]
}

@test "the archive defines the public functions, hidden, and no other global" {
	global=$(nm --defined-only -g "$B/libpolicy.a" | awk 'NF == 3 { print $3 }' | sort)
	[ "$global" = "$public" ]
	visible=$(readelf -sW "$B/libpolicy.a" | awk '$5 == "GLOBAL" && $6 != "HIDDEN" && $7 != "UND" && NF >= 8 { print $8 }')
	[ -z "$visible" ]
}

@test "a program with the archive inside hands nothing on" {
	echo '#include <pageclear/policy.h>
int main(void) { static char b[5000]; pageclear_zero(b, sizeof(b), PAGECLEAR_COLD); return pageclear_status(NULL, 0) < 0; }' \
		>"$BATS_TEST_TMPDIR/use.c"
	$CC -rdynamic -Ilibpolicy/include -o "$BATS_TEST_TMPDIR/use" "$BATS_TEST_TMPDIR/use.c" "$B/libpolicy.a" -lyaml
	PAGECLEAR_POLICY=builtin "$BATS_TEST_TMPDIR/use"
	run nm -D --defined-only "$BATS_TEST_TMPDIR/use"
	[[ $output != *pageclear_* ]]
	[[ $output != *pc_* ]]
}

@test "a fully static program works" {
	echo '#include <pageclear/policy.h>
int main(void) { static char b[5000]; pageclear_zero(b, sizeof(b), PAGECLEAR_SCRUB); return pageclear_status(NULL, 0) != 1; }' \
		>"$BATS_TEST_TMPDIR/use.c"
	$CC -static -Ilibpolicy/include -o "$BATS_TEST_TMPDIR/use" "$BATS_TEST_TMPDIR/use.c" "$B/libpolicy.a" -lyaml 2>/dev/null ||
		skip "no static libyaml or libc"
	PAGECLEAR_POLICY=builtin "$BATS_TEST_TMPDIR/use"
}

# Opens and closes the library, also after a fork handler was left in it, beside a static copy of its own.
@test "it may be loaded, closed and loaded again, beside a static copy" {
	cat >"$BATS_TEST_TMPDIR/use.c" <<'END'
#include <dlfcn.h>
#include <pageclear/policy.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void fork_once(void)
{
	int status;
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	if (waitpid(child, &status, 0) != child || status != 0)
		exit(1);
}

int main(int argc, char **argv)
{
	static char bytes[9000];

	for (int i = 0; i < 5; i++) {
		void *library = dlopen(argv[argc - 1], RTLD_NOW | RTLD_GLOBAL);
		if (library == NULL)
			return 2;
		void (*zero)(void *, size_t, unsigned) = (void (*)(void *, size_t, unsigned))dlsym(library, "pageclear_zero");
		if (zero == NULL || zero == pageclear_zero)
			return 3;
		bytes[8999] = 1;
		zero(bytes, sizeof(bytes), PAGECLEAR_SCRUB);
		if (bytes[8999] != 0)
			return 4;
		fork_once();
		if (dlclose(library) != 0 || dlopen(argv[argc - 1], RTLD_NOW | RTLD_NOLOAD) != NULL)
			return 5;
		fork_once();
		pageclear_zero(bytes, sizeof(bytes), PAGECLEAR_SCRUB);
	}
	return 0;
}
END
	$CC -std=gnu11 -Ilibpolicy/include -o "$BATS_TEST_TMPDIR/use" "$BATS_TEST_TMPDIR/use.c" "$B/libpolicy.a" -lyaml -ldl
	PAGECLEAR_POLICY=builtin "$BATS_TEST_TMPDIR/use" "$(realpath "$B/libpolicy.so")"
}
