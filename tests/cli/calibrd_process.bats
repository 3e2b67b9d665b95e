#!/usr/bin/env bats
# calibrd's processes: stopped, killed, hung and faulting ones, two at once, and the daemon without systemd. Nothing may
# outlive them, nothing half-written may stay, and the published policy stands.

# bats sets output and stderr; calibrd_common sets the rest; the commands of `apart` have arguments of their own.
# shellcheck disable=SC2016,SC2030,SC2031,SC2094,SC2153,SC2154

load calibrd_common

# The hung worker takes three quarters of a minute to be given up and hardly any CPU: it hangs beside the other tests.
setup_file() {
	make_folder
	mkdir "$W/hung"
	launch "$W/hung.log" bash -c '"$@"; echo "exit status $?"' hung \
		"$CALIBRD" --once --effort quick --database "$W/hung/calibrd.db" --policy "$W/hung/policy.yaml"
	export HUNG_WORKER
	until_said "$W/hung.log" "measuring: [0-9]* %"
	HUNG_WORKER=$(child_of "$(child_of "$PID")")
	kill -STOP "$HUNG_WORKER"

	D=$W/known/calibrd.db P=$W/known/policy.yaml measure_known "$W/known.log" once
	call_it_good "$W/known/calibrd.db"
	D=$W/known/calibrd.db P=$W/known/policy.yaml once 2>>"$W/known.log"
}

teardown_file() {
	end_all
	rm -rf "$W"
}

# Measuring, in a folder of its own: PID and its WORKER. With "known": beside the policy that is known.
measuring() {
	LOG=$BATS_TEST_TMPDIR/log
	if [ "$1" = known ]; then
		copy_known
	else
		new_folder
	fi
	launch "$LOG" "$CALIBRD" --once --force --effort quick --database "$D" --policy "$P"
	until_said "$LOG" "measuring: [0-9]* %"
	WORKER=$(child_of "$PID")
	[ -n "$WORKER" ]
}

newest_state() {
	ask "$D" "SELECT state FROM calibration ORDER BY id DESC LIMIT 1"
}

newest_reasons() {
	ask "$D" "SELECT reasons FROM calibration ORDER BY id DESC LIMIT 1"
}

# --- ends in the middle ----------------------------------------------------------------------------------------------

@test "SIGTERM and SIGINT end a calibration: the child is gone, it is marked failed, nothing is published" {
	for signal in TERM INT; do
		measuring new
		kill "-$signal" "$PID"
		reap
		[ "$STATUS" -eq 1 ]
		is_gone "$WORKER"
		grep -q "stopped while measuring; nothing was published" "$LOG"
		[ "$(newest_state)" = failed ]
		[ "$(newest_reasons)" = "stopped by a signal" ]
		is_sound "$D"
		only_there "$N" calibrd.db calibrd.db.lock
	done
}

@test "a signal to the whole group, as a terminal or systemd sends it, is the parent's to answer" {
	measuring known
	kill -TERM "$WORKER"
	kill -INT "$WORKER"
	kill -HUP "$WORKER"
	kill -TERM "$PID"
	reap
	[ "$STATUS" -eq 1 ]
	is_gone "$WORKER"
	[ "$(newest_reasons)" = "stopped by a signal" ]
	cmp "$P" "$W/known/policy.yaml"
}

@test "a worker that is killed: said with its signal, exit status 1, the policy stands" {
	measuring known
	kill -KILL "$WORKER"
	reap
	[ "$STATUS" -eq 1 ]
	grep -q "error: the measuring process was killed by signal 9 (Killed)" "$LOG"
	[ "$(newest_state)" = failed ]
	[[ $(newest_reasons) == *"killed by signal 9"* ]]
	cmp "$P" "$W/known/policy.yaml"
	only_there "$N" calibrd.db calibrd.db.lock policy.yaml
	run -0 "$CTL" --policy "$P" --database "$D" status
	holds "calibration 2: failed"
	holds "signal 9 (Killed)"
}

@test "a parent that is killed takes its worker along, and the next start recovers" {
	measuring known
	kill -KILL "$PID"
	reap
	[ "$STATUS" -eq 137 ]
	until_true is_gone "$WORKER"
	[ "$(newest_state)" = running ]
	touch "$N/.policy.yaml.abc123"
	run -0 once
	lacks "measuring"
	holds "is up to date"
	[ "$(newest_state)" = failed ]
	[[ $(newest_reasons) == interrupted* ]]
	is_sound "$D"
	cmp "$P" "$W/known/policy.yaml"
	only_there "$N" calibrd.db calibrd.db.lock policy.yaml
}

@test "two at once: the second is refused and told the first one's number" {
	measuring known
	run -1 once
	holds "calibrd.db: process $PID is writing it"
	run -0 "$CTL" --policy "$P" --database "$D" status
	holds "calibration 2: running"
	kill "$PID"
	reap
	run -0 once
	holds "is up to date"
}

@test "a full disk: said, exit status 1, the policy stands, the database is sound" {
	need_namespace
	copy_known
	apart '
		mount -t tmpfs -o size=1m tmpfs "$1"
		cp -a "$2"/* "$1"
		dd if=/dev/zero of="$1/fill" bs=4096 status=none 2>/dev/null || true
		"$3" --once --effort quick --database "$1/calibrd.db" --policy "$1/policy.yaml"
		"$3" --once --force --effort quick --database "$1/calibrd.db" --policy "$1/policy.yaml" && exit 1
		cmp "$1/policy.yaml" "$2/policy.yaml"
		sqlite3 "$1/calibrd.db" "PRAGMA integrity_check" | grep -x ok
		rm "$1/fill"
		sed -i "s/kernel: [a-z0-9]*/kernel: stosb/" "$1/policy.yaml"
		cp "$1/policy.yaml" "$1/edited"
		dd if=/dev/zero of="$1/fill" bs=4096 status=none 2>/dev/null || true
		"$3" --once --effort quick --database "$1/calibrd.db" --policy "$1/policy.yaml" && exit 1
		cmp "$1/policy.yaml" "$1/edited"
		ls -A "$1"
	' full "$N" "$W/known" "$CALIBRD" >"$BATS_TEST_TMPDIR/log" 2>&1 || { cat "$BATS_TEST_TMPDIR/log"; false; }
	run -0 cat "$BATS_TEST_TMPDIR/log"
	skip_if_too_busy
	holds "is up to date"
	holds "error: database: step: database or disk is full"
	holds "No space left on device"
	lacks "policy.yaml.edited"
	lacks $'\n.policy'
}

@test "a disk that fills up while measuring: the measurements are lost, the policy is not" {
	need_namespace
	copy_known
	LOG=$BATS_TEST_TMPDIR/log
	apart '
		mount -t tmpfs -o size=1m tmpfs "$1"
		cp -a "$2"/* "$1"
		"$3" --once --force --effort quick --database "$1/calibrd.db" --policy "$1/policy.yaml" &
		for ((i = 0; i < 600; i++)); do ! grep -q "measuring: [0-9]* %" "$4" || break; sleep 0.05; done
		dd if=/dev/zero of="$1/fill" bs=4096 status=none 2>/dev/null || true
		wait $! && exit 1
		cmp "$1/policy.yaml" "$2/policy.yaml"
		rm "$1/fill"
		"$3" --once --effort quick --database "$1/calibrd.db" --policy "$1/policy.yaml"
		cmp "$1/policy.yaml" "$2/policy.yaml"
		sqlite3 "$1/calibrd.db" "PRAGMA integrity_check; SELECT state FROM calibration"
	' full "$N" "$W/known" "$CALIBRD" "$LOG" >"$LOG" 2>&1 || { cat "$LOG"; false; }
	run -0 cat "$LOG"
	skip_if_too_busy
	holds "database or disk is full"
	holds $'ok\ndone\nfailed'
}

# --- kernels that fault ----------------------------------------------------------------------------------------------

@test "kernels that fault, hang or clear wrongly are named, recorded, never chosen" {
	[ -x "$W/calibrd-faulty" ] || skip "calibrd-faulty was not built"
	new_folder
	CALIBRD=$W/calibrd-faulty run once
	skip_if_too_busy
	[ "$status" -eq 0 ]
	holds "warning: left out, since their trial failed on this host: t_sigill t_segv t_wrong t_canary t_hang"
	holds "published generation 1"
	[ "$(ask "$D" "SELECT faulted FROM calibration")" = "t_sigill t_segv t_wrong t_canary t_hang" ]
	[ "$(ask "$D" "SELECT count(*) FROM series JOIN kernel ON kernel.id = series.kernel WHERE name LIKE 't\\_%' ESCAPE '\\'")" -eq 0 ]
	without t_ "$P"
	call_it_good "$D"
	CALIBRD=$W/calibrd-faulty run -0 once
	lacks "measuring"
	# calibctl's own table doesn't have them; it names what the calibration recorded all the same.
	run "$CTL" --policy "$P" --database "$D" status
	holds "faulted, never used: t_sigill t_segv t_wrong t_canary t_hang"
	run -0 "$CTL" --policy "$P" --database "$D" kernels
	lacks "t_"
	only_there "$N" calibrd.db calibrd.db.lock policy.yaml
}

# --- the daemon without systemd --------------------------------------------------------------------------------------

daemon() {
	LOG=$BATS_TEST_TMPDIR/log
	launch "$LOG" "$CALIBRD" "$@"
}

@test "the daemon stays; SIGHUP with a bad configuration keeps the old one, with a good one takes it" {
	copy_known
	local probe
	probe=$(grep '^probe' "$P" || true)
	printf 'effort: quick\ndatabase: %s\npolicy: %s\n' "$D" "$P" >"$N/c.yaml"
	daemon --config "$N/c.yaml"
	until_said "$LOG" "is up to date"

	cp "$N/c.yaml" "$N/good.yaml"
	echo 'exclude: [libc]' >>"$N/c.yaml"
	kill -HUP "$PID"
	until_said "$LOG" "error: $N/c.yaml:4:11: exclude: expected any kernel but .*; the configuration of before stays"
	cmp "$P" "$W/known/policy.yaml"

	cp "$N/good.yaml" "$N/c.yaml"
	printf 'pins:\n  - {intent: hot, from: 1G, kernel: stosq}\n' >>"$N/c.yaml"
	kill -HUP "$PID"
	until_said "$LOG" "configuration read again"
	until_said "$LOG" "published generation"
	[ "$(grep -c 'from: 1073741824, kernel: stosq, chunk: 0, pinned: true' "$P")" -eq \
		"$(tables hot '[a-z]*' "$P")" ]
	[ "$(grep '^probe' "$P" || true)" = "$probe" ]

	kill -TERM "$PID"
	reap
	[ "$STATUS" -eq 0 ]
	[ "$(calibrations "$D")" -eq 1 ]
	without measuring "$LOG"
}

# The first is done with once the second is begun.
reload_twice() {
	kill -HUP "$PID"
	until_said "$LOG" "configuration read again"
	kill -HUP "$PID"
	until_true read_twice
}

read_twice() {
	[ "$(grep -c 'configuration read again' "$LOG")" -ge 2 ]
}

@test "a daemon that has measured keeps the rules and the probe over a reload, and --force counts once" {
	new_folder
	: >"$N/c.yaml"
	daemon --force --effort quick --database "$D" --policy "$P" --config "$N/c.yaml"
	until_said "$LOG" "published generation 1\|too slow or too busy"
	output=$(cat "$LOG")
	skip_if_too_busy
	call_it_good "$D"
	cp "$P" "$N/before.yaml"
	reload_twice
	diff <(grep -v '^generation\|^quality' "$P") <(grep -v '^generation\|^quality' "$N/before.yaml")
	kill -TERM "$PID"
	reap
	[ "$STATUS" -eq 0 ]
	[ "$(calibrations "$D")" -eq 1 ]
}

@test "SIGTERM ends an idle daemon and a measuring one, both with exit status 0" {
	copy_known
	daemon --effort quick --database "$D" --policy "$P"
	until_said "$LOG" "is up to date"
	kill -TERM "$PID"
	reap
	[ "$STATUS" -eq 0 ]
	daemon --force --effort quick --database "$D" --policy "$P"
	until_said "$LOG" "measuring for about"
	kill -TERM "$PID"
	reap
	[ "$STATUS" -eq 0 ]
	[ "$(newest_state)" = failed ]
	cmp "$P" "$W/known/policy.yaml"
}

@test "calibrate: manual and import: a daemon that does not measure" {
	new_folder
	for word in manual import; do
		echo "calibrate: $word" >"$N/c.yaml"
		daemon --config "$N/c.yaml" --database "$D" --policy "$P"
		until_said "$LOG" "calibrd.yaml asks not to measure"
		kill -TERM "$PID"
		reap
		[ "$STATUS" -eq 0 ]
		[ "$(calibrations "$D")" -eq 0 ]
	done
	[ ! -e "$P" ]
}

# --- the last: it has hung since setup_file --------------------------------------------------------------------------

@test "a worker that hangs is given up and killed: exit status 1, nothing is published" {
	LOG=$W/hung.log
	until_said "$LOG" "exit status" || until_said "$LOG" "exit status"
	grep -q "error: the measuring process did not end in time and was killed" "$LOG"
	grep -qx "exit status 1" "$LOG"
	is_gone "$HUNG_WORKER"
	D=$W/hung/calibrd.db
	[ "$(newest_state)" = failed ]
	only_there "$W/hung" calibrd.db calibrd.db.lock
}
