#!/usr/bin/env bats
# calibrd and its measuring child killed at random moments of a calibration and of its publication: what programs read
# stays whole, the database is sound, and the next start goes on. Its meter is the simulated one, so that a calibration
# takes a fraction of a second and many moments can be visited; PAGECLEAR_KILLS says how many, PAGECLEAR_SEED which.

# bats sets output; calibrd_common sets the rest.
# shellcheck disable=SC2030,SC2031,SC2153,SC2154

load calibrd_common

now_ms() {
	local now=${EPOCHREALTIME/[.,]/}
	echo $((now / 1000))
}

setup_file() {
	make_folder
	mv "$W/calibrd" "$W/calibrd-real"
	cp "$B/calibrd-fast" "$W/calibrd"
	export KILLS=${PAGECLEAR_KILLS:-20} SEED=${PAGECLEAR_SEED:-$((RANDOM * 32768 + RANDOM))} TAKES
	echo "# $KILLS kills, seed $SEED (PAGECLEAR_KILLS, PAGECLEAR_SEED)" >&3
	N=$W/known D=$W/known/calibrd.db P=$W/known/policy.yaml
	once --force >"$W/known.log" 2>&1
	local before
	before=$(now_ms)
	once --force >>"$W/known.log" 2>&1
	TAKES=$(($(now_ms) - before))
}

setup() {
	RANDOM=$((SEED % 32768 + BATS_TEST_NUMBER))
	LOG=$BATS_TEST_TMPDIR/log
	C=$BATS_TEST_TMPDIR/c.yaml
}

# Another policy than before, whatever is measured: it is written.
begin() {
	printf 'effort: quick\npins:\n  - {intent: hot, from: %dM, kernel: libc}\n' "$KILL" >"$C"
	launch "$LOG" "$CALIBRD" --config "$C" --database "$D" --policy "$P" "$@"
}

teardown() {
	end_all
}

teardown_file() {
	rm -rf "$W"
}

# Half of the moments lie where it decides, remembers and publishes.
sleep_a_while() {
	local ms=$((RANDOM % (TAKES + 20)))
	[ $((RANDOM % 2)) -eq 0 ] || ms=$((TAKES * 7 / 10 + RANDOM % (TAKES / 2 + 20)))
	MOMENT=$ms
	sleep "$(printf '0.%03d' $((ms % 1000)))"
	[ "$ms" -lt 1000 ] || sleep $((ms / 1000))
}

trouble() {
	echo "seed $SEED, kill $KILL after $MOMENT ms: $*" >&2
	tail -n 20 "$LOG" "$BATS_TEST_TMPDIR/next" >&2
	return 1
}

# What a reader finds at this moment, before anyone has repaired anything. A copy, with its journal: asking for it
# repairs it.
check_dead() {
	local copy=$BATS_TEST_TMPDIR/copy
	[ ! -e "$P" ] || "$CTL" --policy "$P" show >"$BATS_TEST_TMPDIR/show" || trouble "the policy does not parse"
	[ "$1" = policy ] || [ -e "$P" ] || trouble "the policy is gone"
	rm -rf "$copy"
	cp -a "$N" "$copy"
	[ ! -e "$copy/calibrd.db" ] || is_sound "$copy/calibrd.db" || trouble "the database is damaged"
}

# It starts, publishes, and leaves nothing behind; generations count up.
check_next_start() {
	once --config "$C" >"$BATS_TEST_TMPDIR/next" 2>&1 || trouble "the next start fails"
	without "damaged\|error:" "$BATS_TEST_TMPDIR/next" || trouble "the next start complains"
	is_sound "$D" || trouble "the database is damaged after the next start"
	[ "$(ask "$D" "SELECT count(*) FROM calibration WHERE state = 'running'")" -eq 0 ] || trouble "still running"
	only_there "$N" calibrd.db calibrd.db.lock policy.yaml || trouble "something is left behind"
	local newest
	newest=$(generation "$P")
	[ "$newest" -ge "$GENERATION" ] || trouble "generation $newest after $GENERATION"
	grep -q "from: $((KILL << 20)), kernel: libc, pinned: true" "$P" || trouble "it is not its policy"
	[ "$(ask "$D" "SELECT yaml FROM published WHERE generation = $newest")" = "$(cat "$P")" ] || trouble "the record differs"
	GENERATION=$newest
}

@test "calibrd killed: the policy parses, the database is sound, the next start goes on" {
	copy_known
	GENERATION=$(generation "$P")
	for ((KILL = 1; KILL <= KILLS / 2; KILL++)); do
		begin --once --force
		local worker
		sleep_a_while
		worker=$(child_of "$PID" 2>/dev/null || true)
		kill -KILL "$PID" 2>/dev/null || true
		reap
		[ "$STATUS" -eq 137 ] || [ "$STATUS" -eq 0 ] || trouble "exit status $STATUS"
		[ -z "$worker" ] || until_true is_gone "$worker"
		check_dead there
		check_next_start
	done
}

@test "calibrd killed at its very first calibration: there is a whole policy or none" {
	for ((KILL = 1; KILL <= KILLS / 5; KILL++)); do
		new_folder
		GENERATION=0
		begin --once
		sleep_a_while
		kill -KILL "$PID" 2>/dev/null || true
		reap
		check_dead policy
		check_next_start
	done
}

# The child of --once: an exit status that tells, and nothing but the calibration lost.
@test "the measuring child killed: said, and the next start goes on" {
	copy_known
	GENERATION=$(generation "$P")
	for ((KILL = 1; KILL <= KILLS / 5; KILL++)); do
		begin --once --force
		sleep_a_while
		local worker
		worker=$(child_of "$PID" 2>/dev/null || true)
		[ -z "$worker" ] || kill -KILL "$worker" 2>/dev/null || true
		reap
		[ "$STATUS" -eq 0 ] || grep -q "killed by signal 9" "$LOG" || trouble "exit status $STATUS, without a word"
		check_dead there
		check_next_start
	done
}

is_settled() {
	grep -q "killed by signal 9\|published generation\|is up to date" "$LOG"
}

@test "the daemon's child killed: the daemon stays, and ends when it is asked to" {
	copy_known
	GENERATION=$(generation "$P")
	for ((KILL = 1; KILL <= KILLS / 10; KILL++)); do
		begin --force
		sleep_a_while
		local worker
		worker=$(child_of "$PID" 2>/dev/null || true)
		[ -z "$worker" ] || kill -KILL "$worker" 2>/dev/null || true
		until_true is_settled
		! is_gone "$PID" || trouble "the daemon is gone"
		kill -TERM "$PID"
		reap
		[ "$STATUS" -eq 0 ] || trouble "exit status $STATUS"
		check_dead there
		check_next_start
	done
}

# With the real meter, whose calibration takes ten seconds: a few. The next start is the fast one's.
@test "the real calibrd killed" {
	[ "$KILLS" -ge 50 ] || skip "takes a quarter of a minute each: with PAGECLEAR_KILLS=50 and more"
	copy_known
	GENERATION=$(generation "$P")
	for ((KILL = 1; KILL <= KILLS / 50; KILL++)); do
		CALIBRD=$W/calibrd-real begin --once --force
		MOMENT=$((RANDOM % 13000))
		sleep $((MOMENT / 1000))
		kill -KILL "$PID" 2>/dev/null || true
		reap
		check_dead there
		check_next_start
	done
}
