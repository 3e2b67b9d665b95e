#!/usr/bin/env bats
# calibctl on policies from tests/data/calibctl and on databases made by tool-calibctl_database. Needs neither a daemon nor
# measurements. B is the build folder. Nothing of the host's own pageclear is looked at, save where a test says so.

# Verbs with their arguments are split on purpose; messages hold shell characters; bats sets stderr.
# shellcheck disable=SC2086,SC2016,SC2154

bats_require_minimum_version 1.5.0

load calibctl_common

VERBS="show explain kernels topology status calibrate cancel wait verify history diff rollback import bench emit help"

setup_file() {
	make_subjects
}

misused() {
	wrong_usage "$1" "Try 'calibctl help" "$CTL" "${@:2}"
}

# --- usage -----------------------------------------------------------------------------------------------------------

@test "--version says which" {
	run -0 "$CTL" --version
	[[ $output =~ ^calibctl\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
	run -0 "$CTL" show --version
	holds "calibctl "
}

@test "help lists every verb, and --help and -h are the same" {
	run -0 "$CTL" help
	for verb in $VERBS; do
		holds "  $verb "
	done
	list=$output
	run -0 "$CTL" --help
	[ "$output" = "$list" ]
	run -0 "$CTL" -h
	[ "$output" = "$list" ]
}

@test "help VERB and VERB --help are the same, even on a command line that is otherwise wrong" {
	for verb in $VERBS; do
		run -0 "$CTL" help "$verb"
		holds "calibctl $verb"
		holds "--json"
		page=$output
		run -0 "$CTL" "$verb" --nonsense --help
		[ "$output" = "$page" ]
	done
	run -0 "$CTL" help explain
	holds "--prior"
	run -0 "$CTL" help topology
	holds "--raw"
}

@test "wrong usage is named" {
	misused "unknown verb 'shew'" shew
	misused "unknown verb 'shew'" help shew
	misused "unknown option '--colour'" show --colour
	misused "unknown option '--colour'" --colour=never show
	misused "unknown option '-x'" kernels -x
	misused "unknown option '--raw'" status --raw
	misused "unknown option '--prior'" kernels --prior cached
	misused "unexpected argument 'more'" show more
	misused "unexpected argument 'more'" topology more
	misused "unexpected argument '--json'" kernels -- --json
	misused "--policy needs a value" --policy
	misused "--policy needs a value" --policy --json
	misused "--policy needs a value" show --policy=
	misused "--database needs a value" explain 4K --database
	misused "--json takes no value" show --json=yes
}

@test "explain names wrong sizes, intents, priors and threads" {
	misused "expected SIZE [INTENT]" explain
	misused "unexpected argument 'twice'" explain 4K hot twice
	for size in "" x 4X -- 1.2.3 4KK; do
		misused "" explain "$size"
	done
	misused "SIZE 'x' is no size" explain x
	misused "SIZE '17E' is more than 64 bits hold" explain 17E
	misused "INTENT 'warm' is none of hot, cold, scrub" explain 4K warm
	misused "--prior 'wet' is none of cached, flushed, unknown" explain 4K --prior wet
	misused "scrub takes no hint" explain 4K scrub --prior cached
	for threads in 0 x 65536 1x " 1" 99999999999999999999; do
		misused "is no number from 1 to 65535" explain 4K --threads="$threads"
	done
}

@test "options may stand before and behind the verb, with = or without" {
	need_x86
	run -0 "$CTL" --policy "$T/native.yaml" --database="$T/good.db" explain --threads 1 4K --prior=cached cold
	reference=$output
	run -0 "$CTL" explain 4K cold --prior cached --policy="$T/native.yaml" --database "$T/good.db"
	[ "$output" = "$reference" ]
}

# --- where -----------------------------------------------------------------------------------------------------------

@test "no policy: what to do" {
	[ ! -e /run/pageclear/policy.yaml ] && [ ! -e /etc/pageclear/policy.yaml ] || skip "this host has a policy"
	run -3 --separate-stderr "$CTL"
	[ -z "$output" ]
	output=$stderr
	holds "systemctl start calibrd"
	holds "make calibrate"
	run -3 "$CTL" explain 4K
	run -1 "$CTL" status
	holds "! no policy"
	run -0 "$CTL" kernels
	run -0 "$CTL" topology
}

@test "a policy that is named must be there, whoever names it" {
	for verb in show "explain 4K" kernels topology status; do
		run -3 "$CTL" --policy "$T/nowhere.yaml" $verb
		holds "nowhere.yaml: No such file or directory"
		PAGECLEAR_POLICY=$T/nowhere.yaml run -3 "$CTL" $verb
		holds '$PAGECLEAR_POLICY'
	done
}

@test "topology and kernels go on without a policy that can't be read" {
	printf 'format: 2\n' >"$T/later.yaml"
	printf 'format: 1\ngeneration: seven\n' >"$T/spoilt.yaml"
	for policy in later spoilt nowhere; do
		run -3 --separate-stderr "$CTL" --policy "$T/$policy.yaml" topology
		holds "topology   $TOPOLOGY"
		holds "policy     cannot be read"
		[[ $stderr == *"$policy.yaml: "* ]]
		run -3 --separate-stderr "$CTL" --policy "$T/$policy.yaml" topology --json
		jq -e --arg id "$TOPOLOGY" '.topology == $id and .policy == null and .policy_matches == null' <<<"$output"
		run -3 --separate-stderr "$CTL" --policy "$T/$policy.yaml" --database "$T/good.db" kernels
		holds "policy     cannot be read"
		holds "faults     as found by calibration 1"
		holds "  libc "
		[[ $stderr == *"$policy.yaml: "* ]]
		run -3 --separate-stderr "$CTL" --policy "$T/$policy.yaml" --database "$T/good.db" kernels --json
		jq -e '.policy == null and (.kernels | length) > 1 and all(.kernels[]; .chosen == [])' <<<"$output"
		need_x86
		run -3 --separate-stderr "$CTL" --policy "$T/$policy.yaml" topology --raw
		holds "basic_cpuid[0]="
		[[ $stderr == *"$policy.yaml: "* ]]
	done
}

@test "PAGECLEAR_POLICY leads, and --policy leads before it" {
	need_x86
	PAGECLEAR_POLICY=$T/native.yaml run -0 "$CTL" show
	[ "${lines[0]}" = "policy     $T/native.yaml (\$PAGECLEAR_POLICY)" ]
	PAGECLEAR_POLICY=$T/nowhere.yaml run -0 "$CTL" show --policy "$T/native.yaml"
	[ "${lines[0]}" = "policy     $T/native.yaml (--policy)" ]
	PAGECLEAR_POLICY=builtin run -3 "$CTL" show
	holds '`builtin`'
}

@test "a program in a build folder finds run/ beside it" {
	need_x86
	mkdir -p "$T/tree/build" "$T/tree/run"
	cp "$CTL" "$T/tree/build/calibctl"
	cp "$T/native.yaml" "$T/tree/run/policy.yaml"
	run -0 "$T/tree/build/calibctl"
	[ "${lines[0]}" = "policy     $T/tree/run/policy.yaml (source tree)" ]
	cp "$T/good.db" "$T/tree/run/calibrd.db"
	run -0 "$T/tree/build/calibctl" explain 1M
	holds "calibration 1"
	run -0 "$T/tree/build/calibctl" status
	says "$T/tree/run/calibrd.db"
	says "PAGECLEAR_POLICY=$T/tree/run/policy.yaml"
}

@test "a policy that can't be read says where it is wrong" {
	printf 'format: 1\ngeneration: seven\n' >"$T/malformed.yaml"
	run -3 "$CTL" --policy "$T/malformed.yaml" show
	holds "malformed.yaml: 2:13: generation: expected a whole number"
	run -3 "$CTL" --policy "$T/malformed.yaml" show --json
	run -3 "$CTL" --policy "$T/malformed.yaml" status
	printf 'format: 2\n' >"$T/newer.yaml"
	run -3 "$CTL" --policy "$T/newer.yaml" show
	holds "newer than this version's"
	run -3 "$CTL" --policy "$T" show
	holds "not a regular file"
}

# --- show ------------------------------------------------------------------------------------------------------------

@test "show is the default, and is as it was" {
	need_x86
	run -0 ctl
	sed -e "s|@CPU@|$CPU|" -e "s|@TOPOLOGY@|$TOPOLOGY|" -e "s|@PATH@|$T/native.yaml|" "$DATA/native.show" >"$T/expected"
	diff "$T/expected" - <<<"$output"
	shown=$output
	run -0 ctl show
	[ "$output" = "$shown" ]
}

@test "show of another host's policy: a warning, exit status 1, and the rules all the same" {
	run -1 "$CTL" --policy "$DATA/foreign.yaml" show
	says "! not for this host: made for ExampleVendor 1/2/3"
	sed -n '/^$/,$p' <<<"$output" | diff "$DATA/foreign.show" -
	run -1 "$CTL" --policy "$DATA/foreign.yaml" show --json
	jq -e '.policy.foreign | startswith("made for ExampleVendor 1/2/3")' <<<"$output"
	sed -e 's|arch: .*|arch: "vax"|' "$DATA/foreign.yaml" >"$T/vax.yaml"
	run -1 "$CTL" --policy "$T/vax.yaml" show
	holds "made for vax"
}

@test "show of a policy with nothing in it that this version knows" {
	printf 'format: 1\nhost: {topology: "0123456789ab", arch: "x86_64", cpus: ["A 1/1/1"]}\nclear: []\n' >"$T/empty.yaml"
	run -1 "$CTL" --policy "$T/empty.yaml" show
	holds "libc everywhere"
	holds "quality    not stated"
}

@test "ages follow SOURCE_DATE_EPOCH" {
	need_x86
	SOURCE_DATE_EPOCH=1795776127 run -0 ctl
	holds "2026-11-27 10:42:07 UTC, just now"
	SOURCE_DATE_EPOCH=1795779727 run -0 ctl
	holds "2026-11-27 10:42:07 UTC, 1 hour ago"
	SOURCE_DATE_EPOCH=1 run -0 ctl
	holds "in the future"
}

# --- kernels, topology, status ---------------------------------------------------------------------------------------

@test "kernels: every row, what is chosen where, and what this CPU lacks" {
	need_x86
	run -0 ctl kernels --json
	names=$(jq -r '.kernels[].name' <<<"$output")
	[ "$(head -n 1 <<<"$names")" = libc ]
	jq -e 'all(.kernels[]; .runs_here == (.lacks == null))' <<<"$output"
	jq -e '.kernels[] | select(.name == "sse2nt") | [.chosen[] | .intent + "/" + (.prior // "")] == ["cold/flushed", "scrub/"]' \
		<<<"$output"
	jq -e 'all(.kernels[]; .faulted == false)' <<<"$output"
	run -0 ctl kernels
	[[ $output =~ movnti\ .*$'\n'"      chosen for cold (cached, unknown), scrub" ]]
	for name in $names; do
		holds "  $name "
	done
	for flag in clzero avx512f; do
		grep -qw "$flag" /proc/cpuinfo || holds "no: needs $flag"
		! grep -qw "$flag" /proc/cpuinfo || lacks "no: needs $flag"
	done
}

@test "kernels: one that faulted in the newest calibration" {
	need_x86
	run -0 "$CTL" --policy "$T/native.yaml" --database "$T/faulted.db" kernels
	[[ $output =~ sse2nt\ +non-temporal\ +[0-9]+\ +faulted ]]
	run -0 "$CTL" --policy "$T/native.yaml" --database "$T/faulted.db" kernels --json
	jq -e '[.kernels[] | select(.faulted) | .name] == ["sse2nt"]' <<<"$output"
	run -0 "$CTL" --policy "$T/native.yaml" --database "$T/other.db" kernels --json
	jq -e '.kernels[0].faulted == null' <<<"$output"
}

@test "topology: facts, and whether the policy was made for them" {
	need_x86
	run -0 ctl topology
	holds "topology   $TOPOLOGY"
	holds "$CPU"
	holds "made for this topology"
	holds "$(uname -r)"
	run -1 "$CTL" --policy "$T/elsewhere.yaml" topology
	says "! the policy was made for topology 0123456789ab"
	run -1 "$CTL" --policy "$T/elsewhere.yaml" topology --json
	jq -e '.policy_matches == false and .hard.arch == "x86_64"' <<<"$output"
	jq -e 'has("raw") | not' <<<"$output"
	jq -e --argjson cpus "$(getconf _NPROCESSORS_ONLN)" '.hard.threads == $cpus' <<<"$output"
}

@test "topology --raw: a CPUID dump and nothing else" {
	need_x86
	run -0 ctl topology --raw
	[[ ${lines[0]} =~ ^[a-z_]+.*= ]]
	holds "basic_cpuid[0]="
	lacks "topology  "
	run -0 ctl topology --raw --json
	jq -e '.raw | contains("basic_cpuid[0]=")' <<<"$output"
}

@test "status: all is well" {
	need_x86
	run -0 ctl status
	holds "generation 7, quality good, measured 3 days ago"
	says "calibration 1: done, standard effort, 1 day ago, quality good"
	holds "$TOPOLOGY, as in the policy"
	lacks "! "
	PAGECLEAR_POLICY=$T/native.yaml run -0 "$CTL" --database "$T/good.db" status
	says "library    $T/native.yaml: generation 7"
}

@test "status: what needs attention" {
	need_x86
	run -1 "$CTL" --policy "$T/noisy.yaml" --database "$T/good.db" status
	says "! the policy was measured on a noisy host"
	run -1 "$CTL" --policy "$T/elsewhere.yaml" --database "$T/good.db" status
	says "! the policy was made for topology 0123456789ab, this host is $TOPOLOGY"
	# A failed attempt beside a calibration that holds is history; alone it is a worry.
	run -0 "$CTL" --policy "$T/native.yaml" --database "$T/failed.db" status
	lacks "! "
	says "calibration 1: done"
	cp "$T/failed.db" "$T/only.db"
	sqlite3 "$T/only.db" "DELETE FROM rounds; DELETE FROM series; DELETE FROM published;
		DELETE FROM calibration WHERE state = 'done'"
	run -1 "$CTL" --policy "$T/native.yaml" --database "$T/only.db" status
	says "! the last calibration failed: the child was killed"
	run -1 "$CTL" --policy "$DATA/foreign.yaml" --database "$T/good.db" status
	says "! the policy is not for this host"
	PAGECLEAR_POLICY=$DATA/foreign.yaml run -1 "$CTL" --database "$T/good.db" status
	says "! programs do not get this policy"
}

@test "status: a running calibration and faulted kernels are no trouble" {
	need_x86
	run -0 "$CTL" --policy "$T/native.yaml" --database "$T/running.db" status
	holds "calibration 2: running"
	run -0 "$CTL" --policy "$T/native.yaml" --database "$T/faulted.db" status
	holds "faulted, never used: sse2nt"
	run -0 "$CTL" --policy "$T/native.yaml" --database "$T/failed.db" status --json
	jq -e '.database.newest.state == "failed" and .database.done.id == 1 and (.attention | length) == 0' <<<"$output"
}

# --- form ------------------------------------------------------------------------------------------------------------

@test "--json is JSON, of every verb" {
	need_x86
	for question in show kernels topology status "explain 1M" "explain 1M cold" "explain 4K scrub" "explain 0"; do
		run -0 ctl $question --json
		/usr/bin/python3 -m json.tool <<<"$output" >/dev/null
		jq -e '.policy.generation == 7 and .policy.age_seconds == 259200' <<<"$output"
	done
}

@test "--json holds what is no UTF-8 and what is large" {
	need_x86
	cp "$T/native.yaml" "$T/"$'caf\xe9.yaml'
	run -0 "$CTL" --policy "$T/"$'caf\xe9.yaml' show --json
	jq -e '.policy.path | endswith("caf?.yaml")' <<<"$output"
	sed -e 's|from: 1073741824|from: 18446744073709551615|' "$T/native.yaml" >"$T/large.yaml"
	run -0 "$CTL" --policy "$T/large.yaml" show --json
	/usr/bin/python3 -m json.tool <<<"$output" >/dev/null
	jq -e '.clear[6].rules[3].from > 1.8e19' <<<"$output"
}

# Output as a terminal would get it.
terminal() {
	TERM=xterm script -qec "$(printf '%q ' "$@")" /dev/null
}

@test "colour on a terminal alone, and not with NO_COLOR" {
	need_x86
	run -0 ctl show
	lacks $'\033'
	run -0 terminal "$CTL" --policy "$T/native.yaml" show
	holds $'\033[1m'
	NO_COLOR=1 run -0 terminal "$CTL" --policy "$T/native.yaml" show
	lacks $'\033'
	NO_COLOR='' run -0 terminal "$CTL" --policy "$T/native.yaml" show
	holds $'\033[1m'
	run -0 terminal "$CTL" --policy "$T/native.yaml" show --json
	lacks $'\033'
}

@test "no line is longer than 100 characters" {
	need_x86
	for question in show kernels topology status "explain 3M cold" "explain 4K cold" "explain 64K scrub" help; do
		ctl $question | awk 'length($0) > 100 { print; bad = 1 } END { exit bad }'
	done
}

@test "a full disk is noticed" {
	[ -e /dev/full ] || skip "no /dev/full"
	for question in help --version "kernels --json"; do
		run -3 --separate-stderr sh -c "'$CTL' --policy '$DATA/foreign.yaml' $question >/dev/full"
		[[ $stderr == *"standard output: No space left on device"* ]]
	done
}
