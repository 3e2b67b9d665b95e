#!/usr/bin/env bats
# calibrd: what it says of a wrong command line, a wrong configuration and places where it can't write. Measures nothing.

# bats sets output and stderr; texts are formats on purpose; one log is also a name.
# shellcheck disable=SC2059,SC2094,SC2154

load calibrd_common

setup_file() {
	make_folder
}

teardown_file() {
	rm -rf "$W"
}

misused() {
	wrong_usage "$1" "Try 'calibrd --help'" "$CALIBRD" "${@:2}"
}

# --- command line ----------------------------------------------------------------------------------------------------

@test "wrong usage is named" {
	misused "'--nonsense'" --nonsense
	misused "'x'" -x
	misused "unexpected argument 'more'" more
	misused "unexpected argument 'more'" --once -- more
	misused "--effort is quick, standard or thorough, not 'fast'" --effort fast
	misused "--effort is quick, standard or thorough, not ''" --effort=
	misused "'--once'" --once=1
	for option in --effort --config --database --policy; do
		misused "'$option' requires an argument" --once "$option"
	done
}

@test "--help and --version" {
	run -0 --separate-stderr "$CALIBRD" --help
	for option in --once --force --config --database --policy --effort --version; do
		holds "$option"
	done
	[ -z "$stderr" ]
	run -0 "$CALIBRD" --version
	[[ $output =~ ^calibrd\ [0-9]+\.[0-9]+\.[0-9]+$ ]]
}

@test "a path that is none, or too long, is refused by its option's name" {
	for option in --database --policy; do
		run -2 "$CALIBRD" --once "$option" ''
		holds "$option: expected a file's path"
		run -2 "$CALIBRD" --once "$option" "/$(printf 'p%.0s' {1..500})"
		holds "$option: the path is longer than"
	done
}

@test "--worker is not for people" {
	run -2 "$CALIBRD" --worker </dev/null
	holds "started by calibrd itself, not by hand"
	head -c 1000 /dev/zero >"$BATS_TEST_TMPDIR/order"
	run -2 "$CALIBRD" --worker <"$BATS_TEST_TMPDIR/order"
	holds "not by hand"
}

@test "messages: the program's name for people, a level for the journal, which JOURNAL_STREAM tells apart" {
	local log=$BATS_TEST_TMPDIR/log
	JOURNAL_STREAM=1:2 run -2 "$CALIBRD" --config /nowhere/calibrd.yaml
	[ "$output" = "calibrd: error: /nowhere/calibrd.yaml: No such file or directory" ]
	touch "$log"
	JOURNAL_STREAM=$(stat -c %d:%i "$log") "$CALIBRD" --config /nowhere/calibrd.yaml 2>>"$log" || true
	[ "$(cat "$log")" = "<3>/nowhere/calibrd.yaml: No such file or directory" ]
}

# --- configuration ---------------------------------------------------------------------------------------------------

# Exit status 2, FILE:LINE:COLUMN and what was expected; neither database nor policy come into being.
refused() {
	local where=$1 expected=$2 text=$3 folder=$BATS_TEST_TMPDIR/refused
	mkdir -p "$folder"
	printf "$text" >"$BATS_TEST_TMPDIR/c.yaml"
	run -2 "$CALIBRD" --once --config "$BATS_TEST_TMPDIR/c.yaml" --database "$folder/d.db" --policy "$folder/p.yaml"
	holds "$BATS_TEST_TMPDIR/c.yaml:$where: "
	holds "$expected"
	[ -z "$(ls -A "$folder")" ]
}

@test "mistakes in calibrd.yaml: file, line, column, what was expected; nothing is written" {
	refused 2:1 'unknown key "efort", expected one of effort' '\nefort: quick\n'
	refused 1:10 'unknown key "memory.most", expected one of most_bytes' 'memory: {most: 3M}\n'
	refused 1:9 'effort: expected one of quick, standard, thorough, found fast' 'effort: fast\n'
	refused 2:15 'scrub_weight: expected' 'effort: quick\nscrub_weight: heavy\n'
	refused 1:15 'scrub_weight: expected' 'scrub_weight: 11\n'
	refused 1:22 'memory.most_bytes: expected 0 or at least' 'memory: {most_bytes: 4K}\n'
	refused 1:10 'exclude: expected a list' 'exclude: movnti\n'
	refused 1:11 'exclude: expected any kernel but' 'exclude: [libc]\n'
	refused 1:9 'policy: expected a file' 'policy: policy.yaml\n'
	refused 2:1 '' 'effort: {\n'
	refused 1:9 '' 'effort: *quick\n'
	refused 2:1 '' 'effort: quick\neffort: quick\n'
}

@test "a configuration that is named must be there" {
	new_folder
	run -2 once --config "$N/nowhere.yaml"
	[ "$output" = "calibrd: error: $N/nowhere.yaml: No such file or directory" ]
	run -2 once --config "$N"
	holds "not a regular file"
	[ -z "$(ls -A "$N")" ]
}

# --- what can't be written -------------------------------------------------------------------------------------------

@test "a policy that could not be published is told before measuring, not after" {
	new_folder
	run -1 once --policy "$N/nowhere/policy.yaml"
	holds "error: $N/nowhere: No such file or directory"
	lacks "measuring"
	run -1 once --policy "$N"
	holds "error: $N: not a regular file"
	lacks "measuring"
	[ "$(calibrations "$D")" -eq 0 ]
}

@test "a database that can't be there is told by its path" {
	new_folder
	run -1 once --database /proc/calibrd.db
	holds "error: /proc"
	mkdir "$N/folder"
	run -1 once --database "$N/folder"
	holds "error: $N/folder"
	run -1 once --database "$N/a/b/c.db"
	holds "error: $N/a/b: No such file or directory"
	[ ! -e "$P" ]
}

@test "another user's folders: refused with the path that is the trouble" {
	need_root
	mkdir -m 755 "$W/mine"
	mkdir -m 777 "$W/anyone"
	cd /
	run -1 setpriv --reuid 65534 --regid 65534 --clear-groups \
		"$CALIBRD" --once --effort quick --database "$W/mine/calibrd.db" --policy "$W/anyone/p.yaml"
	holds "error: $W/mine: Permission denied"
	run -1 setpriv --reuid 65534 --regid 65534 --clear-groups \
		"$CALIBRD" --once --effort quick --database "$W/anyone/calibrd.db" --policy "$W/mine/p.yaml"
	holds "error: $W/mine: Permission denied"
	[ -z "$(ls -A "$W/mine")" ]
}
