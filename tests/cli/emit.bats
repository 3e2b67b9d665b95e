#!/usr/bin/env bats
# calibctl emit: values for glibc by lists of loaders that are made up and by this host's own, a file for environment.d(5),
# and a header that a compiler takes and that answers as libpolicy does. B is the build folder.

# Verbs with their arguments are split on purpose; messages hold shell characters; bats sets output and stderr.
# shellcheck disable=SC2086,SC2016,SC2154

bats_require_minimum_version 1.5.0

load calibrd_common

STOSB=glibc.cpu.x86_rep_stosb_threshold
MEMSET_NT=glibc.cpu.x86_memset_non_temporal_threshold

setup_file() {
	export B=${B:-build} T=$BATS_FILE_TMPDIR DATA=tests/data/calibctl
	unset PAGECLEAR_POLICY GLIBC_TUNABLES
	# A copy, so that no run/ of the source tree is found.
	mkdir "$T/bin"
	cp "$B/calibctl" "$T/bin/calibctl"
	export CTL=$T/bin/calibctl
	make_native "$T/native.yaml"
	for scenario in good stores; do
		"$B/tool-calibctl_database" "$T/$scenario.db" "$TOPOLOGY" "$scenario"
	done
	loader old "$STOSB: 0x800 (min: 0x1, max: 0xffffffffffffffff)"
	loader new "$STOSB: 0x800 (min: 0x1, max: 0xffffffffffffffff)" "$MEMSET_NT: 0xc000000 (min: 0x4040, max: 0xffffffffffffffff)"
	loader narrow "$STOSB: 0x800 (min: 0x1, max: 0x5000)"
	loader tight "$STOSB: 0x800 (min: 0x700, max: 0x900)"
	loader bare "glibc.malloc.check: 0 (min: 0, max: 3)" "$STOSB:"
}

# name, lines: a loader that says so, and nothing unless it is asked for that.
loader() {
	local name=$1
	shift
	{
		echo '#!/bin/sh'
		echo '[ "$*" = --list-tunables ] && [ -z "$GLIBC_TUNABLES" ] || exit 1'
		printf "echo '%s'\n" "$@"
	} >"$T/$name"
	chmod +x "$T/$name"
}

need_erms() {
	[ "$(uname -m)" = x86_64 ] || skip "glibc has these tunables on x86_64 alone"
	grep -qw erms /proc/cpuinfo || skip "this CPU has no ERMS"
}

# database, loader, format
tuned() {
	"$CTL" --policy "$T/native.yaml" --database "$T/$1.db" emit "$3" --loader "$T/$2"
}

# format, and what is to run it, if anything
verified() {
	"${@:2}" "$CTL" --policy "$T/native.yaml" --database "$T/stores.db" emit "$1" --verify
}

@test "wrong usage is named" {
	run -2 --separate-stderr "$CTL" emit
	[[ $stderr == *"expected FORMAT"* ]]
	run -2 --separate-stderr "$CTL" emit yaml
	[[ $stderr == *"'yaml' is none of glibc-tunables, environment.d, c-header"* ]]
	run -2 --separate-stderr "$CTL" emit c-header --verify
	[[ $stderr == *"--verify is for glibc-tunables"* ]]
	run -2 --separate-stderr "$CTL" emit c-header --loader /bin/true
	[[ $stderr == *"--loader is for glibc-tunables"* ]]
	run -2 --separate-stderr "$CTL" emit environment.d --verify --loader /bin/true
	[[ $stderr == *"not with --loader"* ]]
	[ -z "$output" ]
	run -0 "$CTL" help emit
	for word in glibc-tunables environment.d c-header --verify --loader; do
		[[ $output == *"$word"* ]]
	done
}

# --- glibc ------------------------------------------------------------------------------------------------------------

@test "the threshold lies where vector stores stop winning" {
	need_erms
	run -0 --separate-stderr tuned stores old glibc-tunables
	[ "$output" = "$STOSB=65536" ]
	[[ $stderr == *"$MEMSET_NT is left out"* ]]
	[[ $stderr == *"memset from 4 KiB to 64 KiB: "* ]]
	run -0 --separate-stderr tuned stores new glibc-tunables
	[ "$output" = "$STOSB=65536" ]
	[[ $stderr != *"left out"* ]]
}

@test "only what the loader lists, and within its range" {
	need_erms
	run -0 --separate-stderr tuned stores narrow glibc-tunables
	[ "$output" = "$STOSB=16384" ]
	run -0 --separate-stderr tuned stores tight glibc-tunables
	[ -z "$output" ]
	[[ $stderr == *"nothing to set"* ]]
	run -0 --separate-stderr tuned stores bare glibc-tunables
	[ -z "$output" ]
	[[ $stderr == *"$STOSB is left out: $T/bare does not list it"* ]]
	run -0 --separate-stderr tuned stores bare environment.d
	[ -z "$output" ]
}

@test "nothing to gain: nothing is printed, and that is no fault" {
	need_erms
	for format in glibc-tunables environment.d; do
		run -0 --separate-stderr tuned good old $format
		[ -z "$output" ]
		[[ $stderr == *"nothing to set: no other threshold gains"* ]]
	done
}

@test "a loader that cannot be asked is named" {
	need_erms
	printf '#!/bin/sh\necho half\nexit 1\n' >"$T/failing"
	printf '#!/bin/sh\nwhile :; do echo "more of the same, and no end of it"; done\n' >"$T/endless"
	chmod +x "$T/failing" "$T/endless"
	for name in failing endless missing; do
		run -3 --separate-stderr tuned stores $name glibc-tunables
		[ -z "$output" ]
		[[ $stderr == *"$T/$name: "* ]]
	done
}

@test "without measurements, or with another host's, nothing is printed" {
	run -3 --separate-stderr "$CTL" --policy "$T/native.yaml" --database "$T/none.db" emit glibc-tunables
	[ -z "$output" ]
	run -3 --separate-stderr "$CTL" --policy "$T/none.yaml" emit glibc-tunables
	[ -z "$output" ]
	run -1 --separate-stderr "$CTL" --policy "$DATA/foreign.yaml" --database "$T/stores.db" emit glibc-tunables
	[ -z "$output" ]
	[[ $stderr == *"not for this host"* ]]
}

@test "this host's own loader takes what is emitted" {
	need_erms
	local interpreter value
	interpreter=$(readelf -lW "$CTL" | sed -n 's/.*program interpreter: \(.*\)\]/\1/p')
	"$interpreter" --list-tunables 2>/dev/null | grep -q "^$STOSB: " || skip "$interpreter does not list $STOSB"
	value=$("$CTL" --policy "$T/native.yaml" --database "$T/stores.db" emit glibc-tunables 2>"$T/said") || cat "$T/said"
	[ -n "$value" ] || skip "nothing to set for this libc's own thresholds"
	[[ $value =~ ^$STOSB=([0-9]+) ]]
	local bytes=${BASH_REMATCH[1]}
	GLIBC_TUNABLES=$value run -0 "$interpreter" --list-tunables
	[[ $output == *"$STOSB: $(printf '0x%x' "$bytes") "* ]]
	GLIBC_TUNABLES=$value run -0 --separate-stderr /bin/true
	[ -z "$stderr" ]
}

@test "environment.d: comments, and a line that keeps what others have set" {
	need_erms
	run -0 --separate-stderr tuned stores old environment.d
	[ "$(grep -vc '^#' <<<"$output")" -eq 1 ]
	[[ $output == *"from calibration 1 (good) of topology $TOPOLOGY"* ]]
	local generator=/usr/lib/systemd/user-environment-generators/30-systemd-environment-d-generator
	[ -x $generator ] || skip "no generator for environment.d here"
	mkdir -p "$T/config/environment.d"
	cat >"$T/config/environment.d/10-other.conf" <<<"GLIBC_TUNABLES=glibc.malloc.check=1"
	cat >"$T/config/environment.d/50-pageclear.conf" <<<"$output"
	XDG_CONFIG_HOME=$T/config run -0 $generator
	[[ $output == *"GLIBC_TUNABLES=glibc.malloc.check=1:$STOSB=65536"* ]]
	rm "$T/config/environment.d/10-other.conf"
	XDG_CONFIG_HOME=$T/config run -0 $generator
	[[ $output == *"GLIBC_TUNABLES=$STOSB=65536"* ]]
}

@test "--json: the text, the notes, and the tunables with their ranges" {
	need_erms
	run -0 --separate-stderr "$CTL" --json --policy "$T/native.yaml" --database "$T/stores.db" emit glibc-tunables \
		--loader "$T/old"
	jq -e --arg name $STOSB '.format == "glibc-tunables" and .text == $name + "=65536\n" and .policy.generation == 7
		and (.notes | length) > 0 and .gain > 1 and .from == 4096 and .to == 65536
		and (.tunables | length) == 2 and .tunables[0].value == 65536 and .tunables[0].present == 2048
		and .tunables[0].min == 1 and .tunables[1].listed == false and .tunables[1].value == null' <<<"$output"
	run -0 --separate-stderr "$CTL" --json --policy "$T/native.yaml" emit c-header
	jq -e '.format == "c-header" and (.text | startswith("/*"))' <<<"$output"
}

# Whether it gains here is the meter's word, and decides what is printed; that both agree is what is tested.
@test "--verify measures with the value and without it" {
	need_erms
	local format figures
	for format in glibc-tunables environment.d; do
		run --separate-stderr verified $format
		[[ $stderr == *"nothing to set"* ]] && skip "nothing to set for this libc's own thresholds"
		figures=$stderr
		case $status in
		0)
			[[ $'\n'$output == *[$'\n:']$STOSB=* || $output == *"}$STOSB="* ]]
			[ $format = glibc-tunables ] || figures=$output
			;;
		1) [ -z "$output" ] && [[ $stderr == *"nothing is set: "* ]] ;;
		*) false ;;
		esac
		[ "$(grep -cE '(cached|flushed) .* GB/s  +[0-9.a-]+x$' <<<"$figures")" -ge 8 ]
	done
}

@test "--verify: a value that does not gain is not set, and what was measured is told" {
	need_erms
	local format
	gcc -shared -fPIC -O1 -fno-builtin -fno-tree-loop-distribute-patterns -o "$T/slower.so" -x c - <<-'C'
		#include <stdlib.h>
		void *memset(void *dst, int value, size_t len)
		{
			for (int times = getenv("GLIBC_TUNABLES") == NULL ? 1 : 2; times > 0; times--)
				for (size_t i = 0; i < len; i++)
					((volatile char *)dst)[i] = (char)value;
			return dst;
		}
	C
	for format in glibc-tunables environment.d; do
		run --separate-stderr verified $format env LD_PRELOAD="$T/slower.so"
		[[ $stderr == *"nothing to set"* ]] && skip "nothing to set for this libc's own thresholds"
		[ "$status" -eq 1 ]
		[ -z "$output" ]
		[[ $stderr == *"nothing is set: $STOSB="* ]]
		[ "$(grep -cE '(cached|flushed) .* GB/s  +[0-9.a-]+x$' <<<"$stderr")" -ge 8 ]
	done
}

@test "--verify leaves out sizes that there is too little memory for" {
	need_erms
	need_namespace
	# 40 KiB, and what the meter takes besides.
	run --separate-stderr verified glibc-tunables scarce $((4 * (10 * 1024 + 40)))
	[[ $stderr == *"nothing to set"* ]] && skip "nothing to set for this libc's own thresholds"
	[ "$status" -le 1 ]
	[[ $stderr == *"sizes above 40 KiB are not measured: too little memory is available"* ]]
	[[ $stderr == *" 32 KiB "* && $stderr != *" 64 KiB  "*GB/s* ]]
	run -3 --separate-stderr verified glibc-tunables scarce $((4 * (10 * 1024 + 1)))
	[ -z "$output" ]
	[[ $stderr == *"too little memory is available to measure sizes from "* ]]
}

# --- the header -------------------------------------------------------------------------------------------------------

# Strictly, by every compiler that is here; alone and beside libpolicy's own header; included twice.
compiles() {
	local before compiler found=0
	for before in "" "#include <pageclear/policy.h>"; do
		printf '%s\n#include "%s"\n#include "%s"\nint main(void)\n{\n\treturn pageclear_table_choose(0, 0, 1, 0) == 0;\n}\n' \
			"$before" "$1" "$1" >"$T/use"
		for compiler in "gcc -x c -std=c11" "clang -x c -std=c11" "g++ -x c++ -std=c++17" "clang++ -x c++ -std=c++17"; do
			type -P "${compiler%% *}" >/dev/null || continue
			$compiler -pedantic -Wall -Wextra -Wconversion -Wshadow -Werror -D_DEFAULT_SOURCE -Ilibpolicy/include \
				-c -o "$T/use.o" "$T/use"
			found=$((found + 1))
		done
	done
	[ $found -ge 2 ]
}

# policy: every look-up by header and library, at each rule's edge and at many sizes between.
agrees() {
	"$CTL" --policy "$1" emit c-header >"$T/tables.h" 2>/dev/null
	compiles "$T/tables.h"
	cat >"$T/agree.c" <<-'END'
		#include <pageclear/policy.h>
		#include <stdio.h>
		#include <string.h>
		#include "tables.h"

		static unsigned long asked, other;

		static int is_known(const char *name, char **lacking)
		{
			for (; *lacking != NULL; lacking++)
				if (strcmp(*lacking, name) == 0)
					return 0;
			return 1;
		}

		static void ask(const struct pageclear_policy *policy, unsigned intent, unsigned prior, unsigned threads, size_t len,
		                char **lacking)
		{
			static const unsigned hints[] = {0, PAGECLEAR_CACHED, PAGECLEAR_FLUSHED};
			const struct pageclear_table_rule *rule = pageclear_table_choose(intent, prior, threads, len);
			struct pageclear_query query = {sizeof(query), len, intent | hints[prior], threads};
			struct pageclear_choice choice = {.size = sizeof(choice)};
			const char *name = rule == NULL ? "libc" : pageclear_table_kernels[rule->kernel];
			size_t chunk = rule == NULL ? 0 : rule->chunk;

			if (pageclear_policy_choose(policy, &query, &choice) != 0)
				choice.kernel = "?";
			if (!is_known(name, lacking))
				name = "libc";
			asked++;
			if (strcmp(name, choice.kernel) != 0 || chunk != choice.chunk) {
				other++;
				printf("%u %u %u %zu: %s %zu, libpolicy %s %zu\n", intent, prior, threads, len, name, chunk,
				       choice.kernel, choice.chunk);
			}
		}

		int main(int argc, char **argv)
		{
			const struct pageclear_policy *policy;

			if (argc < 2 || pageclear_policy_open(&policy, argv[1]) != 0)
				return 2;
			for (unsigned i = 0; i < 9 * 6; i++)
				for (unsigned step = 0; step < 64 * 16; step++)
					for (unsigned near = 0; near < 3; near++)
						if (i / 18 < 2 || i / 6 % 3 == 0)
							ask(policy, i / 18, i / 6 % 3, i % 6,
							    (1ull << step / 16) + (1ull << step / 16) / 16 * (step % 16) + near - 1,
							    argv + 2);
			for (const struct pageclear_table *table = pageclear_tables; table->count != 0; table++)
				for (unsigned r = 0; r < table->count; r++)
					for (unsigned near = 0; near < 3; near++)
						ask(policy, table->intent, table->prior, table->threads,
						    table->rules[r].from + near - 1, argv + 2);
			printf("%lu asked, %lu differ\n", asked, other);
			return other != 0 || asked < 10000;
		}
	END
	gcc -std=gnu11 -Wall -Wextra -Werror -I"$T" -Ilibpolicy/include -o "$T/agree" "$T/agree.c" -L"$B" -lpolicy
	LD_LIBRARY_PATH=$B "$T/agree" "$@"
}

@test "c-header: valid C11 and C++17, and its look-ups are libpolicy's" {
	local lacking
	lacking=$("$CTL" kernels --json --policy "$T/native.yaml" 2>/dev/null | jq -r '.kernels[] | select(.runs_here | not).name')
	agrees "$T/native.yaml" unheard_of $lacking
	grep -q '^#define PAGECLEAR_TABLE_COLD_FLUSHED_1_FROM_1 2048ull /\* SSE2NT: measured, gain 2.91' "$T/tables.h"
	grep -q '^ \* generation  7$' "$T/tables.h"
	grep -q "^ \* topology    $TOPOLOGY\$" "$T/tables.h"
	grep -q '^ \* measured    2026-11-27T10:42:07Z$' "$T/tables.h"
	grep -q '^#define PAGECLEAR_TABLES_PROBE_SLOW_PS 57000 ' "$T/tables.h"
}

@test "c-header: tables for threads, chunks below a page, no table at all" {
	{
		sed -n '1,/^clear:/p' "$T/native.yaml"
		for threads in 4 1 16; do
			printf '  - {intent: cold, when: {threads: %s, prior: flushed}, rules: [{from: 0, kernel: libc},
				{from: %s000, kernel: movnti, chunk: 77}, {from: 9223372036854775808, kernel: sse2}]}\n' \
				$threads $((threads + RANDOM % 2))
		done
	} >"$T/threads.yaml"
	agrees "$T/threads.yaml"
	{
		sed -n '1,/^clear:/p' "$T/native.yaml"
		echo '  - {intent: later, when: {threads: 1}, rules: [{from: 0, kernel: libc}]}'
	} >"$T/empty.yaml"
	agrees "$T/empty.yaml"
}

@test "c-header: nothing in a policy gets out of its comment or its string" {
	sed -e 's|name: "Example CPU"|name: "*/ #error out /* ??/ \\" \\\\"|' -e 's|topology: .*|topology: "\\" 1 \\"\\\\"|' \
		"$T/native.yaml" >"$T/hostile.yaml"
	"$CTL" --policy "$T/hostile.yaml" emit c-header >"$T/hostile.h"
	compiles "$T/hostile.h"
	[ "$(grep -c '^#error' "$T/hostile.h")" -eq 0 ]
	grep -q '^ \* host        _/ _error out /_ __/ _ _$' "$T/hostile.h"
}

@test "c-header: another host's policy is as good a source" {
	run -0 --separate-stderr "$CTL" --policy "$DATA/foreign.yaml" emit c-header
	[[ $stderr == *"not of this host"* ]]
	echo "$output" >"$T/foreign.h"
	compiles "$T/foreign.h"
}
