#!/usr/bin/env bats
# The public header stands alone in C and C++, and its inline clear is no second function.

setup() {
	cd "$BATS_TEST_DIRNAME/../.." || return 1
	B=${B:-build}
	cat >"$BATS_TEST_TMPDIR/use.c" <<'END'
#include <pageclear/policy.h>

void by_size(void *dst, size_t len) { pageclear_zero(dst, len, PAGECLEAR_WIPE); }

int main(void)
{
	static unsigned char large[70000];
	unsigned char small[64];
	void (*address)(void *, size_t, unsigned) = pageclear_zero;
	struct pageclear_query query = {sizeof(query), 5, PAGECLEAR_HOT, 1};
	struct pageclear_choice choice;
	const struct pageclear_policy *policy;
	struct iovec range;

	large[0] = large[69999] = small[0] = small[63] = 1;
	by_size(large, 69999);
	by_size(small, sizeof(small));
	if (large[0] != 0 || large[69999] != 1 || small[0] != 0 || small[63] != 0)
		return 1;
	range.iov_base = large;
	range.iov_len = sizeof(large);
	pageclear_zero_ranges(&range, 1, PAGECLEAR_SCRUB);
	address(large, sizeof(large), PAGECLEAR_COLD);
	choice.size = sizeof(choice);
	if (pageclear_policy_builtin(&policy) != 0 || pageclear_policy_choose(policy, &query, &choice) != 0)
		return 2;
	pageclear_policy_zero(policy, large, sizeof(large), PAGECLEAR_HOT);
	if (pageclear_policy_close(policy) != NULL)
		return 3;
	return large[69999] == 0 && pageclear_status(NULL, 0) >= 0 && pageclear_reload() == 0 ? 0 : 4;
}
END
	cp "$BATS_TEST_TMPDIR/use.c" "$BATS_TEST_TMPDIR/use.cc"
	ln -sf "$(realpath "$B/libpolicy.so")" "$BATS_TEST_TMPDIR/libpolicy.so.0"
}

# build_and_run COMPILER FLAGS...: against the shared library
build_and_run() {
	local source=use.c program=$BATS_TEST_TMPDIR/use
	command -v "$1" >/dev/null || skip "no $1"
	case $1 in *++*) source=use.cc ;; esac
	"$@" -Wall -Wextra -Wconversion -Wshadow -Werror -Ilibpolicy/include -o "$program" "$BATS_TEST_TMPDIR/$source" "$B/libpolicy.so"
	PAGECLEAR_POLICY=builtin LD_LIBRARY_PATH=$BATS_TEST_TMPDIR "$program"
}

every_way() {
	local level
	for level in -O0 -O2 "-O2 -fPIC -fvisibility=hidden" "-O2 -DPAGECLEAR_NO_INLINE"; do
		# shellcheck disable=SC2086
		build_and_run "$@" $level || return 1
	done
}

@test "gcc, C11, pedantic" { every_way gcc -std=c11 -pedantic; }
@test "gcc, C90" { every_way gcc -std=c90; }
@test "gcc, C23" { every_way gcc -std=c2x -pedantic; }
@test "clang, C11, pedantic" { every_way clang -std=c11 -pedantic; }
@test "clang, C17, pedantic" { every_way clang -std=c17 -pedantic; }
@test "gcc, C17, with what is seldom on" { every_way gcc -std=c17 -pedantic -Wcast-qual -Wundef -Wredundant-decls -Wsign-conversion; }
@test "g++, C++11, pedantic" { every_way g++ -std=c++11 -pedantic; }
@test "g++, C++17, pedantic" { every_way g++ -std=c++17 -pedantic; }
@test "g++, C++20, pedantic" { every_way g++ -std=c++20 -pedantic; }
@test "clang++, C++17, pedantic" { every_way clang++ -std=c++17 -pedantic; }
@test "clang++, C++20, everything that clang warns of" {
	every_way clang++ -std=c++20 -pedantic -Weverything -Wno-c++98-compat -Wno-c++98-compat-pedantic -Wno-unsafe-buffer-usage \
		-Wno-unknown-warning-option -Wno-missing-prototypes -Wno-zero-as-null-pointer-constant
}
@test "gcc, link-time optimisation" { build_and_run gcc -O2 -flto; }

@test "a program emits no pageclear_ symbol of its own" {
	for compiler in gcc clang; do
		command -v $compiler >/dev/null || continue
		for level in -O0 -O2; do
			$compiler $level -Ilibpolicy/include -c -o "$BATS_TEST_TMPDIR/use.o" "$BATS_TEST_TMPDIR/use.c"
			run nm --defined-only "$BATS_TEST_TMPDIR/use.o"
			[ "$status" -eq 0 ]
			[[ $output != *pageclear_* ]]
		done
	done
}

@test "the compiler learns nothing of dst from a clear of no bytes" {
	cat >"$BATS_TEST_TMPDIR/null.c" <<-'END'
		#include <pageclear/policy.h>
		__attribute__((noinline, noclone)) int f(int *p, size_t n);
		int f(int *p, size_t n) { pageclear_zero(p, n, PAGECLEAR_WIPE); if (p == NULL) return 1; *p = 5; return 0; }
		int main(int argc, char **argv) { (void)argv; return f(argc > 5 ? &argc : NULL, argc > 5 ? sizeof(argc) : 0); }
	END
	for compiler in gcc clang; do
		command -v $compiler >/dev/null || continue
		$compiler -O2 -Ilibpolicy/include -o "$BATS_TEST_TMPDIR/null" "$BATS_TEST_TMPDIR/null.c" "$B/libpolicy.so"
		LD_LIBRARY_PATH=$BATS_TEST_TMPDIR PAGECLEAR_POLICY=builtin run "$BATS_TEST_TMPDIR/null"
		[ "$status" -eq 1 ]
	done
}

@test "a small clear is not optimised away, and calls no library" {
	printf '%s\n' '#include <pageclear/policy.h>' 'void small(void);' \
		'void small(void) { char key[32]; key[0] = 1; pageclear_zero(key, sizeof(key), PAGECLEAR_WIPE); }' \
		>"$BATS_TEST_TMPDIR/small.c"
	for compiler in gcc clang; do
		command -v $compiler >/dev/null || continue
		$compiler -O2 -Ilibpolicy/include -S -o "$BATS_TEST_TMPDIR/small.s" "$BATS_TEST_TMPDIR/small.c"
		run cat "$BATS_TEST_TMPDIR/small.s"
		[[ $output != *pageclear_zero* ]]
		# Stores to the stack, or a call of memset: whatever the compiler likes.
		grep -qE 'mov(ap|up|dq).*,.*\(%r[sb]p\)|movq.*,.*\(%r[sb]p\)|st[pr].*\[sp|memset' "$BATS_TEST_TMPDIR/small.s"
	done
}
