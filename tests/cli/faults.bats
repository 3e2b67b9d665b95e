#!/usr/bin/env bats
# The daemon beside what goes wrong around it: measuring children that are stopped, killed, or meet kernels that fault;
# a database that is damaged, removed or has no room any more while it runs; clocks that are set. It stays, says what is
# wrong once, and goes on.

# bats sets output and stderr; calibrd_common sets the rest; the commands of `apart` have arguments of their own.
# shellcheck disable=SC2016,SC2030,SC2031,SC2094,SC2153,SC2154

load calibrd_common

# What a service tells its manager, a line a message.
notify='
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
while True:
    print(s.recv(65536).decode(), flush=True)
'

# A stopped child is given up after three quarters of a minute: it is stopped beside the other tests.
setup_file() {
	make_folder
	cp "$B/calibrd-fast" "$B/shim-clock.so" "$W/"
	printf 'effort: quick\nquiet: {wait_seconds: 0, most_percent: 100}\n' >"$W/c.yaml"
	export STOPPED STOPPED_CHILD N
	N=$W/stopped
	mkdir "$N"
	listen
	NOTIFY_SOCKET=$N/notify launch "$N/log" "$CALIBRD" --config "$W/c.yaml" --database "$N/calibrd.db" --policy "$N/policy.yaml"
	STOPPED=$PID
	until_said "$N/log" "measuring for about"
	until_true has_child "$STOPPED"
	STOPPED_CHILD=$(child_of "$STOPPED")
	kill -STOP "$STOPPED_CHILD"

	D=$W/known/calibrd.db P=$W/known/policy.yaml
	"$W/calibrd-fast" --once --config "$W/c.yaml" --database "$D" --policy "$P" >"$W/known.log" 2>&1
}

teardown_file() {
	end_all
	rm -rf "$W"
}

listen() {
	launch "$N/status" python3 -c "$notify" "$N/notify" "$W"
	until_true test -S "$N/notify"
}

has_child() {
	[ -n "$(child_of "$1")" ]
}

# In N, beside what is known there, with its log and what it tells its manager: PID.
daemon() {
	local program=$1
	shift
	LOG=$BATS_TEST_TMPDIR/log
	listen
	NOTIFY_SOCKET=$N/notify launch "$LOG" "$program" --config "$W/c.yaml" --database "$D" --policy "$P" "$@"
}

is_up() {
	! is_gone "$PID"
}

stop_daemon() {
	is_up
	kill -TERM "$PID"
	reap
	[ "$STATUS" -eq 0 ]
	is_sound "$D"
}

said_times() {
	[ "$(grep -c -- "$2" "$LOG")" -eq "$1" ] || {
		cat "$LOG"
		return 1
	}
}

is_recorded() {
	[ "$(ask "$D" "SELECT yaml FROM published ORDER BY generation DESC LIMIT 1")" = "$(cat "$P")" ]
}

has_failed() {
	[ "$(ask "$D" "SELECT state FROM calibration ORDER BY id DESC LIMIT 1")" = failed ]
}

# --- children --------------------------------------------------------------------------------------------------------

@test "a child that is killed: the daemon stays with its policy, says it once, and tries again" {
	copy_known
	daemon "$CALIBRD" --force
	until_said "$LOG" "measuring for about"
	until_true has_child "$PID"
	kill -KILL "$(child_of "$PID")"
	until_said "$LOG" "killed by signal 9"
	until_said "$N/status" "STATUS=.*killed by signal 9 (Killed); next try in"
	is_up
	cmp "$P" "$W/known/policy.yaml"
	said_times 1 "error:"
	until_true has_failed
	stop_daemon
}

# --- the database ----------------------------------------------------------------------------------------------------

@test "a database that is damaged while it is open: kept beside, begun anew, the policy stands till it is measured" {
	copy_known
	daemon "$W/calibrd-fast"
	until_said "$LOG" "is up to date"
	dd if=/dev/zero of="$D" bs=4096 count=40 conv=notrunc status=none
	kill -HUP "$PID"
	until_said "$LOG" "error: database: .*calibrd keeps it beside and begins a new one when it next opens it"
	is_up
	cmp "$P" "$W/known/policy.yaml"
	kill -HUP "$PID"
	until_said "$LOG" "was damaged: it is kept as $D.damaged-1"
	until_true is_recorded
	[ "$(generation "$P")" -ge "$(generation "$W/known/policy.yaml")" ]
	stop_daemon
	[ "$(calibrations "$D")" -eq 1 ]
}

@test "a database that is removed while it is open" {
	copy_known
	daemon "$W/calibrd-fast"
	until_said "$LOG" "is up to date"
	rm "$D"
	printf 'pins:\n  - {intent: hot, from: 1G, kernel: libc}\n' | cat "$W/c.yaml" - >"$N/pinned.yaml"
	cp "$W/c.yaml" "$N/kept.yaml"
	cp "$N/pinned.yaml" "$W/c.yaml"
	kill -HUP "$PID"
	until_said "$LOG" "configuration read again"
	cp "$N/kept.yaml" "$W/c.yaml"
	until_said "$LOG" "it was moved or removed while it was open"
	kill -HUP "$PID"
	until_said "$LOG" "measuring for about"
	until_true test -e "$D"
	until_true has_child_no_more
	stop_daemon
}

has_child_no_more() {
	[ -z "$(child_of "$PID")" ]
}

@test "a disk that fills up while it runs: the policy stands, and once there is room it goes on" {
	need_namespace
	new_folder
	LOG=$BATS_TEST_TMPDIR/log
	apart '
		mount -t tmpfs -o size=6m tmpfs "$1"
		cp -a "$2"/* "$1"
		"$3" --config "$4" --database "$1/calibrd.db" --policy "$1/policy.yaml" &
		until_said() { for ((i = 0; i < 600; i++)); do ! grep -q "$1" "$log" || return 0; sleep 0.05; done; return 1; }
		log=$5
		until_said "is up to date"
		dd if=/dev/zero of="$1/fill" bs=4096 status=none 2>/dev/null || true
		printf "pins:\n  - {intent: hot, from: 1G, kernel: libc}\n" >>"$4"
		kill -HUP $!
		until_said "error: .*No space left\|error: .*disk is full"
		kill -0 $!
		cmp "$1/policy.yaml" "$2/policy.yaml"
		rm "$1/fill"
		kill -HUP $!
		until_said "published generation"
		grep -q "pinned: true" "$1/policy.yaml"
		kill $!
		wait $!
		sqlite3 "$1/calibrd.db" "PRAGMA integrity_check"
		ls -A "$1"
	' full "$N" "$W/known" "$W/calibrd-fast" "$(cp "$W/c.yaml" "$BATS_TEST_TMPDIR" && echo "$BATS_TEST_TMPDIR/c.yaml")" "$LOG" \
		>"$LOG" 2>&1 || { cat "$LOG"; false; }
	run -0 cat "$LOG"
	[ "$(grep -c "error:" "$LOG")" -eq 1 ]
	[[ $output == *$'\nok\ncalibrd.db\ncalibrd.db.lock\npolicy.yaml' ]]
}

# --- clocks ----------------------------------------------------------------------------------------------------------

at() {
	echo "$1" >"$BATS_TEST_TMPDIR/now"
	shift
	SHIM_CLOCK=$BATS_TEST_TMPDIR/now LD_PRELOAD=$W/shim-clock.so CALIBRD=$W/calibrd-fast once "$@"
}

@test "clocks that were never set, stand before 1970, far ahead, and go back: all is remembered in its order" {
	new_folder
	run -0 at 0
	holds "published generation 1"
	[ "$(ask "$D" "SELECT started, finished FROM calibration")" = "1|1" ]
	for second in -5 1000000 9000000000 1700000000; do
		run -0 at "$second" --force
		holds "measuring for about"
		run -0 at "$second"
		lacks "measuring"
		holds "is up to date"
	done
	[ "$(ask "$D" "SELECT group_concat(id) FROM calibration WHERE state = 'done'")" = "1,2,3,4,5" ]
	is_sound "$D"
	run -0 "$CTL" --policy "$P" show
	run -0 "$CTL" --policy "$P" --database "$D" status
	holds "calibration 5: done"
}

@test "a clock that is set back while it measures: an end before the beginning is remembered as it is" {
	new_folder
	LOG=$BATS_TEST_TMPDIR/log
	echo 1700000000 >"$BATS_TEST_TMPDIR/now"
	SHIM_CLOCK=$BATS_TEST_TMPDIR/now launch "$LOG" env LD_PRELOAD="$W/shim-clock.so" \
		"$W/calibrd-fast" --once --effort quick --database "$D" --policy "$P"
	until_said "$LOG" "measuring: "
	echo 1600000000 >"$BATS_TEST_TMPDIR/later"
	mv "$BATS_TEST_TMPDIR/later" "$BATS_TEST_TMPDIR/now"
	reap
	[ "$STATUS" -eq 0 ]
	[ "$(ask "$D" "SELECT state, started FROM calibration")" = "done|1700000000" ]
	is_sound "$D"
	run -0 at 1600000001
	lacks "measuring"
}

# --- the last: its child has been stopped since setup_file -----------------------------------------------------------

@test "a child that is stopped: given up and killed, the daemon stays and tries again" {
	N=$W/stopped LOG=$W/stopped/log PID=$STOPPED D=$W/stopped/calibrd.db
	until_said "$LOG" "did not end in time and was killed" || until_said "$LOG" "did not end in time and was killed"
	is_gone "$STOPPED_CHILD"
	until_said "$N/status" "STATUS=.*did not end in time and was killed; next try in"
	said_times 1 "error:"
	is_up
	kill -HUP "$PID"
	until_said "$N/status" "READY=1"
	until_true has_child "$PID"
	kill -TERM "$PID"
	until_true is_gone "$PID"
	is_sound "$D"
}
