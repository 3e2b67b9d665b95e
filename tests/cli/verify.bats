#!/usr/bin/env bats
# calibctl verify, on this very host: what it refuses, what it measures against, what it records. No test looks at a time
# or a gain: only at what is said, and where. Five of them measure for a quarter of a minute each.

# bats sets output and stderr; messages hold shell characters.
# shellcheck disable=SC2154,SC2016

load calibrd_common

setup_file() {
	export B=${B:-build} DATA=tests/data/calibctl T
	unset PAGECLEAR_POLICY NO_COLOR SOURCE_DATE_EPOCH
	# A folder that any user may enter; a copy of the program, so that no run/ of the source tree is found.
	T=$(mktemp -d "${TMPDIR:-/tmp}/verify-XXXXXX")
	chmod 755 "$T"
	mkdir "$T/bin"
	cp "$B/calibctl" "$T/bin/calibctl"
	export CTL=$T/bin/calibctl
	make_native "$T/native.yaml"
	"$B/tool-calibctl_database" "$T/good.db" "$TOPOLOGY" good
	libraries
}

teardown_file() {
	rm -rf "$T"
}

library() {
	gcc -shared -fPIC -O1 -fno-builtin -fno-tree-loop-distribute-patterns -o "$T/$1.so" -x c -
}

# memset as bytes or words go, in ways that are right, wrong, and worse.
libraries() {
	library slow <<-'C'
		#include <stddef.h>
		#include <stdio.h>
		__attribute__((constructor)) static void hello(void) { puts("a library that talks"); }
		void *memset(void *dst, int value, size_t len)
		{
			for (volatile unsigned char *at = dst; len > 0; len--)
				*at++ = (unsigned char)value;
			return dst;
		}
	C
	library short <<-'C'
		#include <stddef.h>
		void *memset(void *dst, int value, size_t len)
		{
			for (volatile unsigned char *at = dst; len > 1; len--)
				*at++ = (unsigned char)value;
			return dst;
		}
	C
	library long <<-'C'
		#include <stddef.h>
		void *memset(void *dst, int value, size_t len)
		{
			for (volatile unsigned char *at = dst; len + 1 > 0; len--)
				*at++ = (unsigned char)value;
			return dst;
		}
	C
	library faulting <<<'void *memset(void *d, int v, unsigned long n) { (void)v; if (n > 200) __builtin_trap(); while (n--) ((volatile char *)d)[n] = 0; return d; }'
	library hanging <<<'void *memset(void *d, int v, unsigned long n) { (void)v; (void)n; for (volatile int i = 0;; i++) ; return d; }'
	library without <<<'int nothing(void) { return 0; }'
	library dying <<<'__attribute__((constructor)) static void die(void) { __builtin_trap(); }'
	library leaving <<<'#include <stdlib.h>
		__attribute__((constructor)) static void leave(void) { exit(0); }'
	# What it starts lives on, with all that the child had open but for what bats listens to.
	library holding <<-'C'
		#include <fcntl.h>
		#include <stdio.h>
		#include <stdlib.h>
		#include <unistd.h>
		__attribute__((constructor)) static void hold(void)
		{
			int pid = fork(), nothing = open("/dev/null", O_RDWR);
			FILE *held;
			if (pid == 0) {
				for (int fd = 0; fd < 3; fd++)
					dup2(nothing, fd);
				sleep(300);
				_exit(0);
			}
			close(nothing);
			held = fopen(getenv("HELD"), "w");
			fprintf(held, "%d\n", pid);
			fclose(held);
		}
		void *memset(void *dst, int value, size_t len) { (void)value; (void)len; return dst; }
	C
	echo 'no library at all' >"$T/text.so"
}

misused() {
	wrong_usage "$1" "Try 'calibctl help verify'" "$CTL" verify --policy "$T/native.yaml" "${@:2}"
}

# Exit status 3, a reason on stderr, nothing on stdout.
refused() {
	local reason=$1
	shift
	run -3 --separate-stderr "$CTL" verify --database "$T/good.db" "$@"
	[ -z "$output" ]
	output=$stderr
	holds "$reason"
}

# A quick verification: stdout in output, stderr in stderr. Its verdict is this host's business, and the policy is not
# made from measurements: 0 and 1 are both right. A host too busy to be measured at all is no failure of ours.
verified() {
	run --separate-stderr "$@"
	[[ $status -ne 3 || $stderr != *"undisturbed"* ]] || skip "this host is too busy: ${stderr##*calibctl: }"
	[ "$status" -le 1 ] || {
		echo "exit $status: $stderr"
		return 1
	}
}

rows() {
	sqlite3 "$1" "SELECT count(*) FROM $2"
}

# --- what is refused -------------------------------------------------------------------------------------------------

@test "wrong usage names the culprit" {
	misused "--effort 'fast'" --effort fast
	misused "--effort needs a value" --effort
	misused "--effort 'Quick'" --effort=Quick
	misused "--seed 'x'" --seed x
	misused "--seed '-1'" --seed=-1
	misused "--seed '1e3'" --seed 1e3
	misused "--seed '18446744073709551616'" --seed 18446744073709551616
	misused "--seed '9007199254740992'" --seed 9007199254740992
	misused "--tolerance 'much'" --tolerance much
	misused "--tolerance '-1'" --tolerance=-1
	misused "--tolerance '2%'" --tolerance 2%
	misused "--tolerance '1001'" --tolerance 1001
	misused "--tolerance '.'" --tolerance .
	misused "--tolerance '0x2'" --tolerance 0x2
	misused "--tolerance '1.2.3'" --tolerance 1.2.3
	misused "--tolerance 'nan'" --tolerance nan
	misused "--against needs a value" --against
	misused "--against needs a value" --against=
	misused "unexpected argument 'now'" now
	misused "unknown option '--quick'" --quick
}

@test "help tells the options" {
	run -0 "$CTL" help verify
	for option in --effort --against --tolerance --seed --database --json; do
		holds "$option"
	done
	run -0 "$CTL" help
	holds "  verify "
}

@test "a policy of another CPU is a problem, as for every verb" {
	run -1 --separate-stderr "$CTL" verify --policy "$DATA/foreign.yaml" --database "$T/good.db"
	[ -z "$output" ]
	output=$stderr
	holds "$DATA/foreign.yaml: not for this host"
	[ "$(rows "$T/good.db" verification)" -eq 0 ]
}

@test "a policy that is absent, malformed or off" {
	refused "$T/none.yaml" --policy "$T/none.yaml"
	echo "format: [" >"$T/malformed.yaml"
	refused "$T/malformed.yaml" --policy "$T/malformed.yaml"
	sed -e "s|format: 1|format: 99|" "$T/native.yaml" >"$T/newer.yaml"
	refused "$T/newer.yaml" --policy "$T/newer.yaml"
	PAGECLEAR_POLICY=builtin refused "no policy"
}

@test "--against what cannot be measured: a clear reason, at once, and nothing recorded" {
	need_x86
	against() {
		refused "$1" --policy "$T/native.yaml" --effort quick --against "$2"
		holds "$2"
	}
	against "cannot open shared object" "$T/none.so"
	against "cannot open shared object" nowhere-to-be-found.so
	against "cannot load it" "$T/text.so"
	against "no memset of its own" "$T/without.so"
	against "leaves bytes that are not zero, or writes beyond" "$T/short.so"
	against "leaves bytes that are not zero, or writes beyond" "$T/long.so"
	against "killed by a signal" "$T/faulting.so"
	against "does not come to an end" "$T/hanging.so"
	against "while loading" "$T/dying.so"
	against "ended early with exit code 0 while loading" "$T/leaving.so"
	[ "$(rows "$T/good.db" verification)" -eq 0 ]
}

@test "what a library leaves running is not waited for" {
	need_x86
	export HELD=$BATS_TEST_TMPDIR/held
	refused "leaves bytes that are not zero" --policy "$T/native.yaml" --against "$T/holding.so" 3>&-
	local pid
	pid=$(cat "$HELD")
	[ "$(readlink "/proc/$pid/cwd")" = "$PWD" ] # it lives
	kill "$pid"
}

@test "a name without a slash is the file that is here" {
	need_x86
	cd "$T"
	run -3 --separate-stderr "$CTL" verify --policy native.yaml --against text.so
	[[ $stderr == *"$(pwd -P)/text.so: "* ]]
}

# --- what is measured ------------------------------------------------------------------------------------------------

@test "as JSON, against a slow memset, recorded" {
	need_x86
	cp "$T/good.db" "$T/recorded.db"
	publish "$T/recorded.db" 7 "$T/native.yaml"
	ln -s slow.so "$T/link.so"
	local before
	before=$(date +%s)
	SOURCE_DATE_EPOCH=1000 verified "$CTL" verify --effort quick --json --policy "$T/native.yaml" \
		--database "$T/recorded.db" --against "$T/bin/../link.so" --seed 7 --tolerance 12.5
	local code=$status
	# The library's own words are not among it.
	jq -e . <<<"$output" >"$BATS_TEST_TMPDIR/json"
	said() {
		jq -e "$1" "$BATS_TEST_TMPDIR/json" >/dev/null || {
			echo "not so: $1"
			cat "$BATS_TEST_TMPDIR/json"
			return 1
		}
	}
	said '.policy.generation == 7 and .effort == "quick" and .seed == 7 and .tolerance == 0.125'
	said ".topology == \"$TOPOLOGY\" and .against == \"$T/slow.so\""
	said '[.series[] | [.intent, .prior]] == [["hot","cached"],["hot","flushed"],["cold","cached"],["cold","flushed"],["scrub",null]]'
	said 'all(.series[]; .sizes > 0 and .sizes <= .sizes_measured and .floor.mean >= 0 and .floor.p95 >= 0)'
	said 'all(.series[]; .regret.mean <= .regret.worst and .regret.p95 <= .regret.worst and .worst.bytes >= 1024)'
	said 'all(.series[]; .gain > 0 and .best_gain > 0 and .against_gain > 0)'
	said 'all(.series[]; (.unhinted_gain == null) == (.intent == "scrub"))'
	said 'all(.series[]; .passed == (.regret.mean <= .allowed.mean and .regret.p95 <= .allowed.p95))'
	said '.passed == all(.series[]; .passed)'
	said ".passed == $([ "$code" -eq 0 ] && echo true || echo false)"
	said '.recorded == 1 and .not_recorded_because == null'
	[[ $stderr == *"measuring:"* ]]
	[[ $stderr != *"not recorded"* ]]

	[ "$(sqlite3 "$T/recorded.db" 'SELECT generation, topology, effort, passed, against FROM verification')" = \
		"7|$TOPOLOGY|quick|$((1 - code))|$T/slow.so" ]
	[ "$(sqlite3 "$T/recorded.db" 'SELECT at FROM verification')" -ge "$before" ]
	[ "$(rows "$T/recorded.db" verified)" -eq 5 ]
	[ "$(sqlite3 "$T/recorded.db" 'SELECT intent, prior, sizes FROM verified ORDER BY 1, 2')" = \
		"$(jq -r '.series | sort_by(.intent, .prior)[] | [.intent, .prior // "unknown", .sizes] | join("|")' \
			"$BATS_TEST_TMPDIR/json")" ]
	[ "$(sqlite3 "$T/recorded.db" 'PRAGMA integrity_check; PRAGMA foreign_key_check')" = ok ]
}

@test "for people, with calibrd writing the database" {
	need_x86
	exec 9>>"$T/good.db.lock"
	flock -n 9
	verified "$CTL" verify --effort quick --policy "$T/native.yaml" --database "$T/good.db"
	exec 9>&-
	for words in "$T/native.yaml" "quick, seed " "hot, cached" "hot, flushed" "cold, cached" "cold, flushed" "scrub" \
		"unhinted" "verdict"; do
		holds "$words"
	done
	if [ "$status" -eq 1 ]; then # in which words, test_calibctl_verify_print sees to
		holds "cost more than tolerated"
	else
		holds "cost no more than tolerated"
	fi
	output=$stderr
	holds "not recorded: $T/good.db: "
	holds "is writing it"
	[ "$(rows "$T/good.db" verification)" -eq 0 ]
}

@test "an edited file is not the generation that it claims to be" {
	need_x86
	cp "$T/good.db" "$T/edited.db"
	publish "$T/edited.db" 7 "$T/native.yaml"
	sed 's|from: 2048, low: 1536|from: 65536, low: 1536|' "$T/native.yaml" >"$T/edited.yaml"
	verified "$CTL" verify --effort quick --json --tolerance .5 --policy "$T/edited.yaml" --database "$T/edited.db"
	jq -e '.recorded == 1 and .policy.generation == 7 and .tolerance == 0.005' <<<"$output" >/dev/null
	[ "$(sqlite3 "$T/edited.db" 'SELECT generation FROM verification')" = 0 ]
	run -0 "$CTL" history --policy "$T/edited.yaml" --database "$T/edited.db"
	holds "verification 1 of a policy other than those"
	run -0 "$CTL" history --policy "$T/edited.yaml" --database "$T/edited.db" --json
	jq -e '.events[] | select(.event == "verification") | .generation == null' <<<"$output" >/dev/null
}

@test "by a user who may not write the database" {
	need_x86
	need_root
	sed -i "s|topology: .*|topology: \"0123456789ab\"|" "$T/native.yaml"
	before=$(sha256sum "$T/good.db")
	verified setpriv --reuid nobody --regid nogroup --clear-groups "$CTL" verify --effort quick \
		--policy "$T/native.yaml" --database "$T/good.db"
	holds "verdict"
	output=$stderr
	holds "not recorded: $T"
	holds "Permission denied"
	holds "warning: the policy was made for topology 0123456789ab, this host is $TOPOLOGY"
	[ "$(sha256sum "$T/good.db")" = "$before" ]
}

@test "no database is made, nor one of others touched" {
	need_x86
	mkdir "$T/empty"
	verified "$CTL" verify --effort quick --policy "$T/native.yaml" --database "$T/empty/calibrd.db" --json
	jq -e '.recorded == null and (.not_recorded_because | contains("calibrd.db"))' <<<"$output" >/dev/null
	[ -z "$(ls -A "$T/empty")" ]
	output=$stderr
	holds "not recorded: $T/empty/calibrd.db"
}
