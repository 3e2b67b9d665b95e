#!/usr/bin/env bats
# The daemon over the bus, and what it does of its own accord: the real calibrd with the simulated meter, on a private bus.

# bats sets output and stderr; calibrd_common sets the rest.
# shellcheck disable=SC2030,SC2031,SC2153,SC2154

load client_common

setup_file() {
	cd "$BATS_TEST_DIRNAME/../.." || return
	make_client_folder
	cp "$B/calibrd-fast" "$W/"
	export CALIBRD=$W/calibrd-fast
}

setup() {
	make_client
	new_folder
	{
		echo "effort: quick"
		echo "database: $D"
		echo "policy: $P"
		echo "quiet: {wait_seconds: 0}"
	} >"$N/c.yaml"
}

teardown() {
	end_client
}

teardown_file() {
	rm -rf "$W"
}

daemon() {
	: >"$LOG"
	launch "$LOG" "$CALIBRD" --config "$N/c.yaml"
	DAEMON=$PID
	until_true is_there
}

stop() {
	kill -TERM "$DAEMON"
	PID=$DAEMON reap
	[ "$STATUS" -eq 0 ]
}

get() {
	busctl --address="$DBUS_SYSTEM_BUS_ADDRESS" get-property org.pageclear.Calibrd1 /org/pageclear/Calibrd1 \
		org.pageclear.Calibrd1 "$1" | cut -d ' ' -f 2-
}

state_is() {
	[ "$(get State)" = "\"$1\"" ]
}

verify_over_bus() {
	busctl --address="$DBUS_SYSTEM_BUS_ADDRESS" call org.pageclear.Calibrd1 /org/pageclear/Calibrd1 org.pageclear.Calibrd1 \
		Verify s ""
}

# What a verification found, as the daemon would have recorded it: PASSED
found() {
	ask "$D" "INSERT INTO verification (generation, topology, effort, at, passed, soft, newest)
		SELECT (SELECT max(generation) FROM published), topology, 'quick', 1, $1, soft, id FROM calibration
		ORDER BY id DESC LIMIT 1"
}

@test "a new host is measured, published and told of; then asked for again" {
	bus
	daemon
	until_true state_is idle
	[ "$(get Generation)" -eq 1 ]
	[ "$(get PolicyPath)" = "\"$P\"" ]
	run -0 --separate-stderr "$CTL" calibrate --wait
	holds "calibrated good"
	[ "$(calibrations "$D")" -eq 2 ]
	state_is idle
	[ "$(get Job)" -eq 0 ]
	is_sound "$D"
}

@test "asked right after the start, before anything is known" {
	bus
	launch "$LOG" "$CALIBRD" --config "$N/c.yaml"
	DAEMON=$PID
	until_true is_there
	run "$CTL" calibrate --wait
	# It may have begun by itself: then that is told, and no crash.
	[ "$status" -eq 0 ] || holds "is running"
	until_true state_is idle
	[ -s "$P" ]
}

@test "a policy that was removed comes back when something ends, however that ended" {
	bus
	daemon
	until_true state_is idle
	rm "$P"
	verify_over_bus
	until_true test -s "$P"
	until_said "$LOG" "No such file or directory"
	until_true state_is idle
	[ "$(calibrations "$D")" -eq 1 ]
}

@test "an import right after the database became free" {
	bus
	daemon
	until_true state_is idle
	stop
	cp "$P" "$N/import.yaml"
	rm "$P"
	exec 8>>"$D.lock"
	flock 8
	launch "$LOG" "$CALIBRD" --config "$N/c.yaml" 8>&-
	DAEMON=$PID
	until_true is_there
	until_true state_is failed
	exec 8>&-
	run -0 "$CTL" import "$N/import.yaml"
	[ -s "$P" ]
	kill -0 "$DAEMON"
	until_true state_is idle
}

@test "a verification that failed is acted upon after a restart too; one that passed is not" {
	bus
	daemon
	until_true state_is idle
	stop
	found 1
	daemon
	until_true state_is idle
	stop
	[ "$(calibrations "$D")" -eq 1 ]
	found 0
	daemon
	until_said "$LOG" "the policy failed its last verification"
	until_true state_is idle
	[ "$(calibrations "$D")" -eq 2 ]
	stop
	# What was measured since outweighs it, and does not add up with what failed.
	daemon
	until_true state_is idle
	[ "$(calibrations "$D")" -eq 2 ]
	without "epochs of the last" "$LOG"
}

@test "software that changed: accepted where a verification has passed with it, else verified first" {
	bus
	daemon
	until_true state_is idle
	stop
	found 1
	ask "$D" "UPDATE calibration SET soft = 'another=1'"
	daemon
	until_true state_is idle
	without "software or kernels changed" "$LOG"
	stop
	ask "$D" "UPDATE verification SET soft = 'another=2'"
	daemon
	until_said "$LOG" "software or kernels changed"
	until_said "$LOG" "verifying for about"
	until_true state_is failed # the simulated meter knows no calls of the library
	stop
	[ "$(calibrations "$D")" -eq 1 ]
}

@test "a reload that forbids measuring ends what the daemon began by itself, and says so" {
	bus
	sed -i 's/effort: quick/effort: thorough/' "$N/c.yaml"
	daemon
	until_true state_is calibrating
	echo "calibrate: manual" >>"$N/c.yaml"
	kill -HUP "$DAEMON"
	until_true state_is idle
	[[ $(get Reason) == *"calibrd.yaml asks not to measure"* ]]
	[ ! -e "$P" ]
	[ "$(ask "$D" "SELECT state FROM calibration")" = failed ]
}
