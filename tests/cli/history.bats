#!/usr/bin/env bats
# calibctl history, diff and rollback: on databases made by tool-calibctl_database, and, for what calibrd makes of a
# rollback, on one real calibration of quick effort, which tests copy.

# bats sets output and stderr; verbs with their arguments are split on purpose.
# shellcheck disable=SC2016,SC2086,SC2153,SC2154

load calibrd_common

setup_file() {
	make_folder
	export SOURCE_DATE_EPOCH=1796035327 T=$W/made DATA=tests/data/calibctl
	mkdir "$T"
	make_native "$T/native.yaml"
	for scenario in good failed running; do
		"$B/tool-calibctl_database" "$T/$scenario.db" "$TOPOLOGY" "$scenario"
	done
	"$CALIBRD" --once --effort quick --database "$W/known/calibrd.db" --policy "$W/known/policy.yaml" 2>"$W/log" ||
		cat "$W/log"
	call_it_good "$W/known/calibrd.db"
	# Generation 2, which differs for sure: a pin of a kernel that every processor has.
	pin >"$W/pinned.yaml"
	"$CALIBRD" --once --effort quick --database "$W/known/calibrd.db" --policy "$W/known/policy.yaml" \
		--config "$W/pinned.yaml" 2>>"$W/log"
}

teardown() {
	end_all
}

teardown_file() {
	rm -rf "$W"
}

# A single range of one table, at sizes that no grid chooses.
pin() {
	printf 'pins:\n  - {intent: cold, prior: cached, from: 17G, to: 18G, kernel: libc}\n'
}

ctl() {
	"$CTL" --policy "$P" --database "$D" "$@"
}

# What was published as a generation, but for its number.
text_of() {
	ask "$D" "SELECT yaml FROM published WHERE generation = $1" | grep -v '^generation\|^$'
}

is_text_of() {
	diff <(text_of "$1") <(grep -v '^generation\|^$' "$P")
}

# --- history ---------------------------------------------------------------------------------------------------------

@test "history: calibrations and publications, newest first, and which is in force" {
	copy_known
	run -0 ctl history --json
	jq -e '[.events[] | .event + ((.generation // .id) | tostring)] ==
		["publication2", "publication1", "calibration1"]' <<<"$output"
	jq -e '[.events[] | .in_force // false] == [true, false, false]' <<<"$output"
	jq -e '.policy.state == "recorded" and .policy.generation == 2' <<<"$output"
	jq -e '.events[2] | .state == "done" and .effort == "quick" and .quality == "good" and .seconds > 0' <<<"$output"
	jq -e --arg topology "$(topology "$P")" 'all(.events[]; .topology == $topology)' <<<"$output"
	run -0 ctl history
	says "in force generation 2 ($P)"
	says "generation 2: published at a start, from calibration 1; in force"
	says "generation 1: from calibration 1"
	says "calibration 1, quick effort: "
	run -0 ctl history -n 1
	holds "generation 2"
	lacks "generation 1"
}

@test "history: what the policy's file tells" {
	copy_known
	sed -i 's/^quality: .*/quality: emulated/' "$P"
	run -0 ctl history
	says "from calibration 1; in force, edited since"
	run -0 ctl history --json
	jq -e '.policy.state == "edited" and .events[0].in_force and .events[0].edited' <<<"$output"
	sed -i 's/^generation: .*/generation: 77/' "$P"
	run -0 ctl history
	says "generation 77, of which this database knows nothing"
	echo nonsense >"$P"
	run -0 ctl history --json
	jq -e '.policy.state == "unreadable"' <<<"$output"
	rm "$P"
	run -0 ctl history
	says "in force none: withdrawn, or not published there"
	lacks "; in force"
}

@test "history: failed and running calibrations, another topology, verifications" {
	copy_known
	run -0 "$CTL" --policy "$P" --database "$T/failed.db" history
	says "calibration 2, standard effort: failed after"
	says "(the child was killed)"
	run -0 "$CTL" --policy "$P" --database "$T/running.db" history
	says "calibration 2, standard effort: running"
	ask "$D" "INSERT INTO verification (id, generation, topology, effort, at, passed)
		VALUES (1, 2, 'ba9876543210', 'quick', 1000, 0);
		INSERT INTO verified VALUES (1, 'cold', 'flushed', 9, 0.04, 0.1, 0.2, 4096, 0.01, 0.02, 2, 2, NULL, NULL, 0),
		(1, 'cold', 'cached', 9, 0.02, 0.1, 0.2, 4096, 0.01, 0.02, 2, 2, NULL, NULL, 1)"
	run -0 ctl history
	says "1970-01-01 00:16:40"
	says "verification 1 of generation 2, quick effort: failed, mean regret 3 %, at most 4 % (cold, flushed); another topology: ba9876543210"
	run -0 ctl history --json
	jq -e '.events[-1] | .passed == false and (.mean_regret | . > 0.0299 and . < 0.0301)' <<<"$output"
}

@test "history: usage, and databases that are not there" {
	copy_known
	for n in 0 x -1 ""; do
		run -2 ctl history -n "$n"
	done
	run -2 ctl history more
	run -3 "$CTL" --policy "$P" --database "$N/nowhere.db" history
	holds "nowhere.db"
	[ ! -e "$N/nowhere.db" ]
}

# --- diff ------------------------------------------------------------------------------------------------------------

@test "diff: in words, table by table, and what it costs" {
	need_x86
	sed -e 's|from: 2048, low: 1536|from: 65536, low: 1536|' -e 's|knee_bytes: 8388608|knee_bytes: 4194304|' \
		-e 's|^probe.*||' "$T/native.yaml" >"$T/later.yaml"
	run -0 "$CTL" --database "$T/good.db" diff "$T/native.yaml" "$T/later.yaml"
	says "knee 8 MiB -> 4 MiB"
	says "probe from 256 KiB on, 4 loads, 57 ns -> none"
	holds $'\ncold, flushed\n'
	says "rules sse2nt from 2 KiB -> 64 KiB"
	# libc for sse2nt: 2.5x flushed, of one call alone 2x; from 4 KiB, the smallest size measured, to 64 KiB
	says "B costs "
	says "over 4 octaves of sizes; nothing was measured for the sizes beyond"
	lacks "scrub"
	says "of 1 table B costs less in 0, more in 1; 0 within the noise, 0 not known"
	run -0 "$CTL" --database "$T/good.db" diff "$T/native.yaml" "$T/later.yaml" --json
	jq -e '.same == false and (.tables | length) == 1' <<<"$output"
	jq -e '.tables[0] | .cost.verdict == "more" and .cost.share > 1 and .cost.share < 1.5 and .cost.epochs == 3' \
		<<<"$output"
	jq -e '.tables[0].ranges == [{"from": 2048, "to": 65536, "a": {"kernel": "sse2nt", "chunk": 0, "pinned": false},
		"b": {"kernel": "libc", "chunk": 0, "pinned": false}}]' <<<"$output"
	run -0 "$CTL" --database "$T/good.db" diff "$T/later.yaml" "$T/native.yaml" --json
	jq -e '.tables[0].cost.verdict == "less"' <<<"$output"
}

@test "diff: within the noise is said so" {
	need_x86
	sed -e 's|kernel: libc}|kernel: stosq}|' "$T/native.yaml" >"$T/stosq.yaml"
	run -0 "$CTL" --database "$T/good.db" diff "$T/native.yaml" "$T/stosq.yaml" --json
	# As dear as libc when flushed, give or take the epochs' 2 %; a quarter dearer when cached.
	jq -e '.tables[] | select(.intent == "cold" and .prior == "flushed") | .cost.beyond and .cost.verdict == "unknown"' \
		<<<"$output"
	jq -e '.tables[] | select(.intent == "hot" and .prior == "flushed") | .cost.verdict == "noise"' <<<"$output"
	jq -e '.tables[] | select(.intent == "cold" and .prior == "cached") | .cost.verdict == "more"' <<<"$output"
	run -0 "$CTL" --database "$T/good.db" diff "$T/native.yaml" "$T/stosq.yaml"
	says ": within the noise"
}

@test "diff: the same, and --exit-code" {
	need_x86
	run -0 "$CTL" --database "$T/good.db" diff "$T/native.yaml" "$T/native.yaml" --exit-code
	holds "the same choices everywhere"
	sed -e 's|gain: 2.91|gain: 2.5|; s|low: 1536|low: 1024|; s|generation: 7|generation: 8|' "$T/native.yaml" >"$T/gains.yaml"
	run -0 "$CTL" --database "$T/good.db" diff "$T/native.yaml" "$T/gains.yaml" --exit-code
	sed -e 's|quality: good|quality: noisy|' "$T/native.yaml" >"$T/noisy.yaml"
	run -0 "$CTL" --database "$T/good.db" diff "$T/native.yaml" "$T/noisy.yaml"
	holds "good -> noisy"
	run -1 "$CTL" --database "$T/good.db" diff "$T/native.yaml" "$T/noisy.yaml" --exit-code
	run -1 "$CTL" --database "$T/good.db" diff "$T/native.yaml" "$T/noisy.yaml" --exit-code --json
	jq -e '.same == false and .tables == []' <<<"$output"
}

@test "diff: tables that came, different topologies, no measurements" {
	need_x86
	sed -e '/^  - intent: cold/,$!d' "$T/native.yaml" | sed 's/threads: 1/threads: 2/' | cat "$T/native.yaml" - >"$T/two.yaml"
	run -0 "$CTL" --database "$T/good.db" diff "$T/native.yaml" "$T/two.yaml"
	holds $'\ncold, flushed, 2 threads\n'
	says "new; so far held that for 1 thread, which says the same"
	run -0 "$CTL" --database "$T/good.db" diff "$T/two.yaml" "$T/native.yaml"
	says "gone; instead holds that for 1 thread, which says the same"
	sed -e 's|topology: .*|topology: "0123456789ab"|' "$T/stosq.yaml" >"$T/elsewhere.yaml"
	run -0 "$CTL" --database "$T/good.db" diff "$T/native.yaml" "$T/elsewhere.yaml"
	says "$TOPOLOGY -> 0123456789ab: the rules of different hosts"
	says "cost on calibration 1 ("
	run -0 "$CTL" --database "$T/good.db" diff "$DATA/foreign.yaml" "$T/elsewhere.yaml"
	says "cost not known: "
	[ -e /var/lib/pageclear/calibrd.db ] || {
		run -0 "$CTL" diff "$T/native.yaml" "$T/stosq.yaml"
		says "cost not known: no database"
	}
	run -3 "$CTL" --database "$T/nowhere.db" diff "$T/native.yaml" "$T/stosq.yaml"
}

@test "diff: a table that there was none for at all" {
	need_x86
	sed -e '/^  - intent: hot/,/^  - intent: cold/{/^  - intent: cold/!d}' "$T/native.yaml" >"$T/less.yaml"
	sed -e '/^  - intent: hot/,/^  - intent: cold/!d' "$T/native.yaml" | sed -e '/^  - intent: cold/d' -e 's/threads: 1/threads: 2/' |
		cat "$T/less.yaml" - >"$T/hot2.yaml"
	run -0 "$CTL" --database "$T/good.db" diff "$T/less.yaml" "$T/hot2.yaml"
	holds $'\nhot, cached, 2 threads\n'
	says "new; so far held libc, which says the same"
	lacks "1 thread"
}

@test "diff: a knee and a probe that read the same are no difference" {
	need_x86
	sed -e 's|knee_bytes: 8388608|knee_bytes: 8388609|' -e 's|slow_ns: 57|slow_ns: 57.00001|' "$T/native.yaml" >"$T/near.yaml"
	run -0 "$CTL" --database "$T/good.db" diff "$T/native.yaml" "$T/near.yaml" --exit-code
	holds "the same choices everywhere"
	lacks knee
	lacks probe
}

@test "diff: generations; by default the one in force and the one before" {
	copy_known
	run -0 ctl diff
	says "A generation 1"
	says "B $P: generation 2"
	holds $'\ncold, cached\n'
	says "17 GiB - 18 GiB: "
	says "-> libc (pinned)"
	run -0 ctl diff 1 --json
	default=$(ctl diff --json)
	[ "$output" = "$default" ]
	run -0 ctl diff 2 1
	says "libc (pinned) -> "
	run -1 ctl diff 1 2 --exit-code
	run -2 ctl diff 1 9
	holds "there is no generation 9; there are 1-2"
	run -2 ctl diff 9
	holds "there is no generation 9; there are 1-2"
	run -2 ctl diff 99999999999999999999 1
	holds "is no generation's number"
	run -3 ctl diff "$N/nowhere.yaml"
	holds "nowhere.yaml: No such file"
	run -2 ctl diff 1 2 3
	rm "$P"
	run -3 ctl diff
	ask "$D" "DELETE FROM published WHERE generation = 1"
	cp "$W/known/policy.yaml" "$P"
	run -3 ctl diff
	holds "nothing was published before generation 2"
}

# --- rollback --------------------------------------------------------------------------------------------------------

@test "rollback: published anew, word for word, as calibrd would" {
	copy_known
	run -0 ctl rollback 1
	says "published generation 3 in $P: the policy of generation 1 again"
	[ "$(generation "$P")" = 3 ]
	is_text_of 1
	[ "$(ask "$D" "SELECT source, calibration FROM published WHERE generation = 3")" = "rollback|1" ]
	is_sound "$D"
	only_there "$N" calibrd.db calibrd.db.lock policy.yaml
	run -0 ctl history
	says "generation 3: rolled back, to the rules of calibration 1; in force"
	run -0 ctl rollback 2 --json
	jq -e '.published and .generation == 4 and .from == 2' <<<"$output"
}

@test "rollback to what is in force does nothing" {
	copy_known
	run -0 ctl rollback 2
	says "generation 2 is in force already"
	cmp "$P" "$W/known/policy.yaml"
	run -0 ctl rollback 1
	run -0 ctl rollback 1
	says "generation 3, in force, is the same policy as generation 1"
	run -0 ctl rollback 1 --json
	jq -e '.published == false and .generation == 3' <<<"$output"
	[ "$(ask "$D" "SELECT max(generation) FROM published")" = 3 ]
}

@test "rollback: an edited file is kept beside, a removed one comes back" {
	copy_known
	sed -i 's/^quality: .*/quality: emulated/' "$P"
	cp "$P" "$N/edited"
	run -0 ctl rollback 2
	says "kept as $P.edited-2"
	[ "$(generation "$P")" = 3 ]
	cmp "$P.edited-2" "$N/edited"
	is_text_of 2
	rm "$P"
	run -0 ctl rollback 3
	[ "$(generation "$P")" = 4 ]
	is_text_of 2
	run -0 ctl rollback 1 --json
	jq -e '.warnings == []' <<<"$output"
	sed -i 's/^quality: .*/quality: emulated/' "$P"
	run -0 ctl rollback 2 --json
	jq -e --arg kept "$P.edited-5" '(.warnings | length) == 1 and (.warnings[0] | contains($kept))' <<<"$output"
}

@test "rollback: what happened before it failed is told" {
	copy_known
	sed -i 's/^quality: .*/quality: emulated/' "$P"
	ask "$D" "CREATE UNIQUE INDEX full ON published (topology) WHERE generation > 1"
	run -3 ctl rollback 1
	holds "calibctl: warning: $P"
	holds "kept as $P.edited-2"
	holds "calibctl: $P holds the new policy already"
	holds "calibctl: generation 3 has been published before"
	[ "$(ask "$D" "SELECT max(generation) FROM published")" = 2 ]
}

@test "rollback: generations that there are not" {
	copy_known
	run -2 ctl rollback 9
	holds "there is no generation 9; there are 1-2"
	for word in 0 x -1 1.5 99999999999999999999; do
		run -2 ctl rollback -- "$word"
		holds "is no generation's number"
	done
	run -2 ctl rollback
	run -2 ctl rollback 1 2
	cmp "$P" "$W/known/policy.yaml"
}

@test "rollback: another topology's, another CPU's, and kernels that failed since are refused" {
	copy_known
	ask "$D" "UPDATE published SET topology = '0123456789ab' WHERE generation = 1"
	run -1 ctl rollback 1
	holds "generation 1 was made for topology 0123456789ab, this host is $(topology "$P")"
	cp "$W/known/calibrd.db" "$D"
	sed -i 's/^  cpus: .*/  cpus: ["ExampleVendor 1\/2\/3"]/' "$P"
	forge 1 "$P"
	run -1 ctl rollback 1
	holds "generation 1 was made for another CPU: ExampleVendor 1/2/3"
	cp "$W/known/calibrd.db" "$D"
	sed '0,/kernel: libc/s//kernel: stosb/' "$W/known/policy.yaml" >"$P"
	forge 1 "$P"
	ask "$D" "UPDATE calibration SET faulted = 'sse2 stosb'"
	if [ "$(uname -m)" = x86_64 ]; then
		run -1 ctl rollback 1
		holds "generation 1 chooses a kernel that has failed its trial on this host since: stosb"
	fi
	[ "$(ask "$D" "SELECT max(generation) FROM published")" = 2 ]
}

# Puts a text in a generation's place, with the hash that the database checks it by.
forge() {
	/usr/bin/python3 - "$D" "$@" <<-'END'
		import sqlite3, sys
		text = open(sys.argv[3]).read()
		value = 0xcbf29ce484222325
		for byte in text.encode():
		    value = (value ^ byte) * 0x100000001b3 % 2**64
		with sqlite3.connect(sys.argv[1]) as db:
		    db.execute("UPDATE published SET yaml = ?, hash = ? WHERE generation = ?", (text, f"{value:016x}", sys.argv[2]))
	END
}

@test "rollback: a damaged text, no database, nothing published, an unwritable place" {
	copy_known
	ask "$D" "UPDATE published SET yaml = yaml || ' ' WHERE generation = 1"
	run -3 ctl rollback 1
	holds "$D: the text of generation 1 is damaged"
	run -3 ctl diff 1 2
	holds "$D: the text of generation 1 is damaged"
	run -3 "$CTL" --policy "$P" --database "$N/nowhere.db" rollback 1
	[ ! -e "$N/nowhere.db" ]
	run -2 "$CTL" --policy "$P" --database "$T/good.db" rollback 1
	holds "nothing was published yet"
	PAGECLEAR_POLICY=builtin run -3 "$CTL" --database "$D" rollback 2
	holds "name the policy's file with --policy"
	rm "$P"
	run -3 "$CTL" --policy "$N/nowhere/policy.yaml" --database "$D" rollback 2
	holds "nowhere"
	[ "$(ask "$D" "SELECT max(generation) FROM published")" = 2 ]
}

@test "rollback while calibrd runs: what to do, exit status 3" {
	copy_known
	launch "$BATS_TEST_TMPDIR/log" "$CALIBRD" --effort quick --database "$D" --policy "$P" --config "$W/pinned.yaml"
	until_said "$BATS_TEST_TMPDIR/log" "is up to date"
	run -3 ctl rollback 1
	holds "process $PID is writing it"
	holds "End it, then roll back"
	cmp "$P" "$W/known/policy.yaml"
	kill "$PID"
	reap
	run -0 ctl rollback 1
}

@test "/etc read-only: rolled back under /run, and calibrd keeps it there" {
	need_namespace
	copy_known
	run -0 apart '
		mkdir "$1/etc"
		mount -t tmpfs tmpfs "$1/etc"
		mkdir "$1/etc/upper" "$1/etc/work"
		mount -t overlay -o "lowerdir=/etc,upperdir=$1/etc/upper,workdir=$1/etc/work" overlay /etc
		mount -t tmpfs -o mode=755 tmpfs /run
		rm -rf /etc/pageclear
		mkdir /etc/pageclear
		cp "$1/policy.yaml" /etc/pageclear/policy.yaml
		mount -o bind /etc/pageclear /etc/pageclear
		mount -o remount,ro,bind /etc/pageclear
		"$CTL" --database "$1/calibrd.db" rollback 1
		"$CALIBRD" --once --effort quick --database "$1/calibrd.db"
		"$CTL" --database "$1/calibrd.db" history
	' rollback "$N"
	says "/etc/pageclear: Read-only file system: published as /run/pageclear/policy.yaml"
	says "published generation 3 in /run/pageclear/policy.yaml"
	holds "generation 3 in /run/pageclear/policy.yaml is up to date"
	says "in force generation 3 (/run/pageclear/policy.yaml)"
}

@test "a rollback sticks: calibrd publishes it again as it is" {
	copy_known
	ctl rollback 2
	[ "$(generation "$P")" = 2 ] # in force already
	ctl rollback 1
	run -0 once
	holds "generation 3 in $P is up to date"
	lacks "measuring for about"
	ctl rollback 2
	# Without the pin in its configuration calibrd would decide as generation 1 says.
	run -0 once
	holds "generation 4 in $P is up to date"
	rm "$P"
	run -0 once
	holds "published generation 5"
	is_text_of 2
	run -0 once
	holds "generation 5 in $P is up to date"
	[ "$(calibrations "$D")" -eq 1 ]
}

@test "a rollback and calibrd.yaml: pins come last, excluded kernels end it for as long" {
	copy_known
	ctl rollback 1
	printf 'pins:\n  - {intent: hot, prior: cached, from: 17G, to: 18G, kernel: libc}\n' >"$N/c.yaml"
	run -0 once --config "$N/c.yaml"
	holds "published generation 4"
	[ "$(grep -c pinned "$P")" -eq "$(tables hot cached "$P")" ]
	run -0 once
	is_text_of 1
	local other
	other=$(grep -o 'kernel: [a-z0-9]*' "$P" | grep -v libc | head -n 1)
	[ -n "$other" ] || skip "libc everywhere on this host"
	echo "exclude: [${other#kernel: }]" >"$N/c.yaml"
	run -0 once --config "$N/c.yaml"
	holds "the policy that was rolled back to chooses ${other#kernel: }, which calibrd.yaml excludes: decided anew"
	without "$other\\b" "$P"
	run -0 once
	is_text_of 1
	[ "$(calibrations "$D")" -eq 1 ]
}

@test "a rollback lasts until a calibration is done" {
	copy_known
	ctl rollback 2
	ctl rollback 1
	launch "$BATS_TEST_TMPDIR/log" "$CALIBRD" --once --force --effort quick --database "$D" --policy "$P"
	until_said "$BATS_TEST_TMPDIR/log" "measuring: [0-9]* %"
	is_text_of 1
	kill "$PID"
	reap
	run -0 once # given up, so it stands
	holds "generation 3 in $P is up to date"
	# As if one had been done since, and had come to what stands: nothing new was published then.
	ask "$D" "UPDATE calibration SET finished = (SELECT max(at) FROM published) + 60 WHERE state = 'done'"
	run -0 once --config "$W/pinned.yaml"
	holds "published generation 4"
	grep -q pinned "$P"
	[ "$(ask "$D" "SELECT source FROM published WHERE generation = 4")" = restart ]
	run -0 once
	without pinned "$P"
}

# --- form ------------------------------------------------------------------------------------------------------------

@test "no line is longer than 100 characters" {
	copy_known
	for verb in history diff "diff 2 1" "rollback 2"; do
		run -0 ctl $verb
		awk 'length($0) > 100 { print; bad = 1 } END { exit bad }' <<<"${output//$N/}"
	done
}
