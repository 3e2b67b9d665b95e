#!/usr/bin/env bats
# calibctl's verbs that ask something of calibrd, against the real bus code with a made-up daemon behind it
# (tool-bus_stand) on a private dbus-daemon. Nothing is measured.

# bats sets output and stderr; client_common sets the rest; backticks are quoted.
# shellcheck disable=SC2016,SC2030,SC2031,SC2153,SC2154

load client_common

setup_file() {
	make_client_folder
}

setup() {
	make_client
}

teardown() {
	end_client
}

teardown_file() {
	rm -rf "$W"
}

# --- nobody there ----------------------------------------------------------------------------------------------------

@test "no bus: each verb says so and what to do, exit status 3" {
	touch "$W/file"
	for verb in calibrate "calibrate --wait --effort quick" cancel wait "wait --timeout 1" "import $W/file"; do
		read -ra words <<<"$verb"
		run -3 --separate-stderr "$CTL" "${words[@]}"
		[ -z "$output" ]
		output=$stderr
		holds "the system bus cannot be reached (No such file or directory): calibrd is asked over it; "
	done
	DBUS_SYSTEM_BUS_ADDRESS=nonsense run -3 "$CTL" cancel
	holds "the system bus cannot be reached"
}

@test "a bus without calibrd: what to do instead, exit status 3" {
	bus
	touch "$W/file"
	run -3 "$CTL" calibrate
	holds "calibrd is not running: \`systemctl start calibrd\` starts it, \`calibrd --once --force\` measures in the foreground"
	run -3 "$CTL" calibrate --wait --json
	holds "calibrd is not running: "
	run -3 "$CTL" cancel
	holds "calibrd is not running: nothing of its own is running"
	run -3 "$CTL" wait
	holds "calibrd is not running: there is nothing to wait for; \`systemctl start calibrd\` starts it"
	run -3 "$CTL" import "$W/file"
	holds "calibrd is not running: it publishes what is imported; \`systemctl start calibrd\` starts it"
}

@test "status without bus or calibrd says so, and is no worse for it" {
	"$B/tool-calibctl_database" "$BATS_TEST_TMPDIR/d.db" 0123456789ab good
	status_of() {
		run "$CTL" status --policy tests/data/calibctl/foreign.yaml --database "$BATS_TEST_TMPDIR/d.db" "$@"
		[ "$status" -eq 1 ] # it is foreign
	}
	status_of
	says "calibrd not known: the system bus cannot be reached (No such file or directory)"
	status_of --json
	jq -e '.calibrd | .running == null and (.error | contains("cannot be reached"))' <<<"$output"
	local before
	before=$(jq -c .attention <<<"$output")
	bus
	status_of
	says "calibrd not running: \`systemctl start calibrd\` starts it"
	status_of --json
	jq -e '.calibrd == {running: false, error: "calibrd is not running"}' <<<"$output"
	[ "$(jq -c .attention <<<"$output")" = "$before" ]
}

@test "wrong options and arguments" {
	misused() {
		wrong_usage "$1" "Try 'calibctl help" "$CTL" "${@:2}"
	}
	misused "--effort 'fast': expected quick, standard or thorough" calibrate --effort fast
	misused "--effort needs a value" calibrate --effort
	misused "--wait takes no value" calibrate --wait=yes
	misused "unexpected argument 'now'" calibrate now
	misused "--policy: calibrd goes by its own configuration" calibrate --policy x
	misused "--database: calibrd goes by its own configuration" wait --database x
	misused "--policy: calibrd goes by its own configuration" cancel --policy x
	misused "--database: calibrd goes by its own configuration" import x --database x
	for seconds in x -1 1s 1e3 inf 99999999; do
		misused "--timeout '$seconds': expected seconds" wait "--timeout=$seconds"
	done
	misused "unexpected argument 'all'" cancel all
	misused "expected FILE" import
	misused "unexpected argument 'b'" import a b
}

@test "help has their options" {
	run -0 "$CTL" help calibrate
	holds "--effort"
	holds "--wait"
	run -0 "$CTL" help wait
	holds "--timeout"
	run -0 "$CTL" help
	for verb in calibrate cancel wait import; do
		holds "
  $verb "
	done
}

# --- calibrate -------------------------------------------------------------------------------------------------------

@test "calibrate: begins a job, and leaves it at that" {
	need_root
	stand
	run -0 "$CTL" calibrate --effort thorough
	says "begun job 1: \`calibctl wait\` waits for its end"
	grep -x "calibrate 1 thorough" "$STAND"
	tell "finish good"
	run -0 --separate-stderr "$CTL" calibrate --json
	jq -e '. == {job: 2}' <<<"$output"
	grep -x "calibrate 2 " "$STAND"
}

@test "calibrate --wait: progress as plain lines, then how it ended and what is in force" {
	need_root
	stand
	ctl calibrate --wait
	until_said "$LOG" "calibrd is calibrating, 0 %, pass 1 of 4: asked for"
	tell "progress 0.05" "phase pass 2 of 4" "progress 0.43"
	until_said "$LOG" "^calibctl: calibrd is calibrating, 43 %, pass 2 of 4$"
	tell "progress 0.44" "progress 0.999" "published 7 /etc/pageclear/policy.yaml" "finish good as ever"
	ends_with 0
	says "calibrated good: as ever"
	says "policy /etc/pageclear/policy.yaml, generation 7"
	lacks "44 %" # the same tenth
	lacks $'\r'
}

@test "calibrate --wait: each outcome has its exit status" {
	need_root
	stand
	ended() {
		ctl calibrate --wait --json
		until_said "$STAND" "calibrate $1 "
		tell "finish $3"
		reap
		[ "$STATUS" -eq "$2" ]
		run -0 grep -v "^calibctl:" "$LOG"
		jq -e --arg outcome "${3%% *}" --argjson job "$1" '.state == "idle" and .generation == null and
			.ended == {job: $job, task: "calibration", outcome: $outcome, text: "it was so", verification: null}' \
			<<<"$output"
	}
	ended 1 0 "good it was so"
	ended 2 0 "emulated it was so"
	ended 3 1 "noisy it was so"
	ended 4 1 "failed it was so"
	ended 5 1 "cancelled it was so"
	ended 6 1 "splendid it was so"
}

@test "on a terminal a bar rewrites its line" {
	need_root
	stand
	launch "$LOG" script -qec "$CTL calibrate --wait" "$BATS_TEST_TMPDIR/typescript"
	until_said "$STAND" "calibrate 1 "
	tell "progress 0.5"
	until_said "$LOG" $'\rcalibrating \\[###############  *\\]  50 %, pass 1 of 4'
	tell "finish good"
	ends_with 0
	holds "calibrated"
}

@test "what was asked for is refused: said in calibrd's words, exit status 1" {
	need_root
	stand
	tell "refuse EPERM calibrd.yaml forbids measuring (calibrate: import)"
	run -1 --separate-stderr "$CTL" calibrate --wait
	[ -z "$output" ]
	[ "$stderr" = "calibctl: calibrd.yaml forbids measuring (calibrate: import)" ]
	run -0 "$CTL" calibrate
	run -1 "$CTL" calibrate
	holds "calibctl: calibration 1 runs"
	tell "refuse EIO"
	run -1 "$CTL" cancel
	holds "Input/output error"
}

@test "others than root: refused what changes anything, exit status 3; told what there is to know" {
	need_root
	stand
	printf 'format: 1\n' >"$W/file"
	chmod 644 "$W/file"
	for verb in calibrate "calibrate --wait" cancel "import $W/file"; do
		read -ra words <<<"$verb"
		run -3 as_nobody "$CTL" "${words[@]}"
		[ "$output" = "calibctl: this needs root" ]
	done
	without '^\(calibrate\|cancel\|import\)' "$STAND"
	tell "reason nothing to do"
	run as_nobody "$CTL" status --json
	jq -e '.calibrd | .running and .state == "idle" and .reason == "nothing to do"' <<<"$output"
	run -0 as_nobody "$CTL" wait
	says "calibrd idle: nothing to do"
}

# --- left alone ------------------------------------------------------------------------------------------------------

@test "calibrd vanishes while it is waited for: said, exit status 3" {
	need_root
	stand
	ctl calibrate --wait --json
	until_said "$LOG" "calibrating"
	kill -KILL "$DAEMON"
	ends_with 3
	holds "calibrd has left the bus before the end of job 1 was told: \`systemctl status calibrd\`"
	lacks "{"
}

@test "one that was restarted meanwhile is not the one that was asked" {
	need_root
	stand
	ctl calibrate --wait
	until_said "$LOG" "calibrating"
	kill -STOP "$PID"
	kill -KILL "$DAEMON"
	local waiting=$PID
	launch "$STAND.2" "$W/tool-bus_stand" "$DBUS_SYSTEM_BUS_ADDRESS"
	kill -CONT "$waiting"
	PID=$waiting
	ends_with 3
	holds "calibrd has left the bus"
}

@test "the bus vanishes: said, exit status 3" {
	need_root
	stand
	ctl wait
	ends_with 0
	run -0 "$CTL" calibrate
	ctl wait
	until_said "$LOG" "calibrating"
	kill -KILL "$BUS"
	ends_with 3
	holds "the system bus has gone away before the end of what it was at was told"
}

@test "calibrd ends its job and leaves at once: the end counts" {
	need_root
	stand
	ctl calibrate --wait
	until_said "$LOG" "calibrating"
	kill -STOP "$PID"
	tell "finish noisy a busy host"
	kill -KILL "$DAEMON"
	kill -CONT "$PID"
	ends_with 1
	says "calibrated noisy: a busy host"
}

@test "calibrd does not answer, or forgets the job: nobody waits for ever, exit status 3" {
	need_root
	stand
	ctl calibrate --wait
	until_said "$LOG" "calibrating"
	tell "job 0"
	ends_with 3
	holds "calibrd knows nothing of job 1 any more, and told no end of it"
	kill -STOP "$DAEMON"
	run -3 "$CTL" wait
	holds "calibctl: calibrd does not answer"
	run "$CTL" status --json
	kill -CONT "$DAEMON"
	jq -e '.calibrd == {running: true, error: "calibrd does not answer"}' <<<"$output"
}

@test "Ctrl-C and SIGTERM end the waiting, not the job" {
	need_root
	stand
	local job=0
	for signal in INT TERM; do
		job=$((job + 1))
		ctl calibrate --wait
		until_said "$LOG" "calibrating"
		kill "-$signal" "$PID"
		ends_with $((128 + $(kill -l $signal)))
		holds "no longer waiting; calibrd goes on with job $job: \`calibctl wait\` waits for it again, \`calibctl cancel\` ends it"
		run "$CTL" status --json
		jq -e --argjson job $job '.calibrd | .state == "calibrating" and .job == $job' <<<"$output"
		tell "finish good"
	done
}

# --- wait, cancel ----------------------------------------------------------------------------------------------------

@test "wait: until nothing runs or waits, and how it ended" {
	need_root
	stand
	run -0 "$CTL" wait --json
	jq -e '.state == "idle" and .ended == null' <<<"$output"
	tell "state waiting" "reason the host is busy"
	ctl wait --json
	until_said "$LOG" "calibrd is waiting: the host is busy"
	tell "reason the host is busy: 83.8 % of the time" "reason the host is busy: 6 % of the time"
	"$CTL" calibrate >/dev/null
	until_said "$LOG" "calibrd is calibrating"
	tell "finish failed the child was killed"
	ends_with 1
	[ "$(grep -c "busy:" "$LOG")" -le 1 ]
	run -0 grep -v "^calibctl:" "$LOG"
	jq -e '.ended | .job == 1 and .outcome == "failed" and .text == "the child was killed"' <<<"$output"
	# A failure of before.
	tell "state failed" "reason the database cannot be opened; tried again in 4 min"
	run -1 "$CTL" wait
	says "calibrd failed: the database cannot be opened; tried again in 4 min"
}

@test "wait --timeout: exit status 1 when the time is up" {
	stand
	tell "state waiting" "reason on battery"
	run -1 --separate-stderr "$CTL" wait --timeout 0
	[ -z "$output" ]
	output=$stderr
	holds "the time is up, and calibrd is still waiting: on battery"
	run -1 "$CTL" wait --timeout 0.2 --json
	lacks "{"
	tell "state idle"
	run -0 "$CTL" wait --timeout 0
}

@test "cancel: what runs; and nothing to cancel is no fault" {
	need_root
	stand
	ctl calibrate --wait
	until_said "$LOG" "calibrating"
	run -0 "$CTL" cancel
	says "cancelled the policy in force stays"
	ends_with 1
	says "calibrated cancelled: asked for"
	run -0 "$CTL" cancel
	says "nothing nothing runs or waits"
	run -0 "$CTL" cancel --json
	jq -e '. == {cancelled: false}' <<<"$output"
	"$CTL" calibrate >/dev/null
	run -0 "$CTL" cancel --json
	jq -e '. == {cancelled: true}' <<<"$output"
	[ "$(grep -cx cancel "$STAND")" -eq 2 ]
}

# --- import ----------------------------------------------------------------------------------------------------------

@test "import: hands the file over; calibrd judges it" {
	need_root
	stand
	printf 'format: 1\ngeneration: 3\n' >"$BATS_TEST_TMPDIR/p.yaml"
	run -0 "$CTL" import "$BATS_TEST_TMPDIR/p.yaml"
	says "published generation 1 in /etc/pageclear/policy.yaml"
	grep -x "import 24 bytes" "$STAND"
	run -0 "$CTL" import --json "$BATS_TEST_TMPDIR/p.yaml"
	jq -e '. == {published: true, generation: 2, path: "/etc/pageclear/policy.yaml"}' <<<"$output"
	echo nonsense >"$BATS_TEST_TMPDIR/p.yaml"
	run -1 "$CTL" import "$BATS_TEST_TMPDIR/p.yaml"
	[ "$output" = "calibctl: 1:1: expected format: 1" ]
	tell "refuse ESTALE it was made for topology 0123456789ab"
	run -1 "$CTL" import "$BATS_TEST_TMPDIR/p.yaml"
	[ "$output" = "calibctl: it was made for topology 0123456789ab" ]
}

@test "import: files that are none" {
	mkfifo "$BATS_TEST_TMPDIR/fifo"
	run -3 "$CTL" import "$BATS_TEST_TMPDIR/nowhere.yaml"
	holds "nowhere.yaml: No such file or directory"
	run -3 "$CTL" import "$BATS_TEST_TMPDIR"
	holds "$BATS_TEST_TMPDIR: not a regular file"
	run -3 "$CTL" import "$BATS_TEST_TMPDIR/fifo"
	holds "fifo: not a regular file"
}

# --- status ----------------------------------------------------------------------------------------------------------

@test "status: what calibrd is at, and what it failed at" {
	need_root
	stand
	"$CTL" calibrate >/dev/null
	tell "progress 0.43" "generation 7" "path /etc/pageclear/policy.yaml"
	run "$CTL" status
	says "calibrd calibrating, 43 %, pass 1 of 4 (job 1) asked for"
	run "$CTL" status --json
	jq -e '.calibrd | .running and .error == null and .state == "calibrating" and .phase == "pass 1 of 4" and
		.reason == "asked for" and .progress == 0.43 and .job == 1 and .topology == "0123456789ab" and
		.generation == 7 and .policy == "/etc/pageclear/policy.yaml" and (.version | test("^[0-9]"))' <<<"$output"
	tell "finish good" "state failed" "reason the database cannot be opened"
	run -1 "$CTL" status --json
	[ -e /run/pageclear/policy.yaml ] || [ -e /etc/pageclear/policy.yaml ] ||
		jq -e '.attention | any(. == "calibrd could not do what it had to: the database cannot be opened")' <<<"$output"
	PAGECLEAR_POLICY=builtin run "$CTL" status --json
	jq -e '.attention | any(contains("$PAGECLEAR_POLICY is `builtin`"))' <<<"$output"
	run "$CTL" status --json --policy tests/data/calibctl/foreign.yaml
	jq -e '.attention | all(contains("calibrd could not") | not)' <<<"$output"
}
