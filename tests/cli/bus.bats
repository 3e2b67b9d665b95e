#!/usr/bin/env bats
# calibrd on a bus of its own: the real calibrd/bus.c with a made-up daemon behind it (tool-bus_stand), the real
# dbus-daemon, clients of any user and manners. $BUS_STAND: another build of the stand, one with sanitizers say.

# bats sets output; calibrd_common sets the rest.
# shellcheck disable=SC2030,SC2031,SC2153,SC2154

load calibrd_common

NAME=org.pageclear.Calibrd1
OBJECT=/org/pageclear/Calibrd1

setup_file() {
	make_folder
	export IMPOSSIBLE="" STAND=$W/tool-bus_stand
	cp "${BUS_STAND:-$B/tool-bus_stand}" "$STAND"
	type dbus-daemon busctl dbus-send dbus-monitor >/dev/null 2>&1 || IMPOSSIBLE="dbus-daemon, dbus-send, dbus-monitor or busctl is missing"
}

teardown_file() {
	rm -rf "$W"
}

setup() {
	[ -z "$IMPOSSIBLE" ] || skip "$IMPOSSIBLE"
	T=$W/$BATS_TEST_NUMBER
	mkdir "$T"
	SOCKET=$T/bus
	ADDRESS=unix:path=$SOCKET
}

teardown() {
	end_all
}

# --- a bus and who is on it ------------------------------------------------------------------------------------------

# Everyone may do everything (open), or what Debian's system bus lets them (system), there with calibrd's own policy
# (installed).
configure() {
	local rules='<allow own="*"/><allow send_type="method_call"/>'
	[ "$1" = open ] || rules='<deny own="*"/><deny send_type="method_call"/>
		<allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus"/>
		<allow send_destination="org.freedesktop.DBus" send_interface="org.freedesktop.DBus.Monitoring"/>'
	cat >"$T/bus.conf" <<-END
		<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
		 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
		<busconfig><listen>$ADDRESS</listen><auth>EXTERNAL</auth>
		<policy context="default"><allow user="*"/>$rules
		<allow send_type="signal"/><allow send_requested_reply="true" send_type="method_return"/>
		<allow send_requested_reply="true" send_type="error"/><allow receive_type="method_call"/>
		<allow receive_type="signal"/><allow receive_type="method_return"/><allow receive_type="error"/></policy>
		$([ "$1" != installed ] || echo "<include>$PWD/configs/$NAME.conf</include>")
		</busconfig>
	END
}

start_bus() {
	launch "$T/bus.log" dbus-daemon --config-file="$T/bus.conf" --nofork --nopidfile
	BUS=$PID
}

stop_bus() {
	kill "-${1:-TERM}" "$BUS"
	until_true is_gone "$BUS"
}

# Its log, commands and id: $T/NAME.log, `tell NAME COMMAND`, STAND_PID.
start_stand() {
	launch "$T/$1.log" "$STAND" "$ADDRESS" "$T/$1.fifo"
	STAND_PID=$PID
	until_said "$T/$1.log" "^ready"
}

# Returns when it has been done.
tell() {
	local before word=${2%% *}
	before=$(grep -c "^done $word" "$T/$1.log" || true)
	printf '%b\n' "$2" >"$T/$1.fifo"
	until_true more_than "$before" "^done $word" "$T/$1.log"
}

more_than() {
	[ "$(grep -c -- "$2" "$3")" -gt "$1" ]
}

# A bus that hangs must not hold it up; sanitizers speak by the exit status.
end_stand() {
	tell "$1" quit
	until_true is_gone "$STAND_PID"
	PID=$STAND_PID reap
	[ "$STATUS" -eq 0 ] || { cat "$T/$1.log"; return 1; }
}

up() {
	configure "$1"
	start_bus
	start_stand s
	until_said "$T/s.log" "on the bus as $NAME"
}

# --- asking ----------------------------------------------------------------------------------------------------------

is_connected() {
	busctl --address="$ADDRESS" --no-legend list 2>/dev/null | grep -q tool-bus_stand
}

# Full error names and texts, where busctl has its own.
call() {
	local method=$1
	shift
	run dbus-send --bus="$ADDRESS" --print-reply=literal --dest=$NAME $OBJECT "$NAME.$method" "$@"
}

property() {
	busctl --address="$ADDRESS" get-property $NAME $OBJECT $NAME "$@"
}

client() {
	python3 tests/cli/bus_client.py "$SOCKET" "$@"
}

# Signals of the object as JSON, a line each, in $T/heard.
listen() {
	launch "$T/heard" busctl --address="$ADDRESS" --json=short --match="type='signal',path='$OBJECT'" monitor
	until_said "$T/heard" "Monitoring bus message stream" # on standard error
}

# The last one: MEMBER, and its payload.
last_heard() {
	until_said "$T/heard" "\"member\":\"$1\""
	grep "\"member\":\"$1\"" "$T/heard" | tail -n 1 | jq -c .payload.data
}

heard() {
	grep -c "\"member\":\"$1\"" "$T/heard" || true
}

# --- coming and going ------------------------------------------------------------------------------------------------

@test "the interface on the bus is the one of the XML" {
	up open
	busctl --address="$ADDRESS" --xml-interface introspect $NAME $OBJECT >"$T/bus.xml"
	python3 tests/cli/bus_members.py <"$T/bus.xml" >"$T/bus.members"
	python3 tests/cli/bus_members.py <schema/$NAME.xml >"$T/schema.members"
	[ "$(wc -l <"$T/schema.members")" -ge 18 ]
	diff "$T/schema.members" "$T/bus.members"
	# Either side's missing member, type and name would be seen.
	sed '/<method name="Cancel"/d' schema/$NAME.xml | python3 tests/cli/bus_members.py | run ! diff - "$T/bus.members"
	sed '/property.*Progress/s/"d"/"u"/' "$T/bus.xml" | python3 tests/cli/bus_members.py | run ! diff "$T/schema.members" -
	sed 's/name="effort"/name="size"/' "$T/bus.xml" | python3 tests/cli/bus_members.py | run ! diff "$T/schema.members" -
	end_stand s
}

@test "a bus that comes late is joined, and again after it was restarted or killed" {
	configure open
	start_stand s
	until_said "$T/s.log" "no bus at $ADDRESS so far: it is joined when it comes"
	tell s "generation 5"
	local joined=1 signal
	for signal in TERM KILL; do
		start_bus
		until_true more_than $((joined - 1)) "on the bus as $NAME" "$T/s.log"
		[ "$(property Generation)" = "t 5" ]
		stop_bus $signal
		until_true more_than $((joined - 1)) "the bus is gone: it is joined again when it is back" "$T/s.log"
		tell s "progress 0.$joined"
		joined=$((joined + 1))
	done
	start_bus
	until_true more_than 2 "on the bus as $NAME" "$T/s.log"
	[ "$(property Progress)" = "d 0.2" ]
	[ "$(grep -c calibrd: "$T/s.log")" -eq 6 ]
	end_stand s
}

@test "a name that is taken: said once, and it is ours when the other one ends" {
	up open
	local first=$STAND_PID
	start_stand second
	until_said "$T/second.log" "warning: .* $NAME: another process has it"
	tell second "state waiting"
	[ "$(property State)" = 's "idle"' ]
	tell s quit
	until_true is_gone "$first"
	until_said "$T/second.log" "on the bus as $NAME"
	[ "$(property State)" = 's "waiting"' ]
	[ "$(grep -c warning "$T/second.log")" -eq 1 ]
	end_stand second
}

@test "a name that the bus refuses: said with the remedy, and tried again on the next bus" {
	configure system
	start_bus
	start_stand s
	until_said "$T/s.log" "warning: .*$NAME.conf in /usr/share/dbus-1/system.d"
	tell s "progress 0.5"
	stop_bus
	start_bus
	until_true is_connected
	stop_bus
	configure open
	start_bus
	until_said "$T/s.log" "on the bus as $NAME"
	[ "$(property Progress)" = "d 0.5" ]
	[ "$(grep -c warning "$T/s.log")" -eq 1 ]
	end_stand s
}

@test "a bus that hangs holds nobody up, not even at the end with megabytes still to send" {
	up open
	kill -STOP "$BUS"
	tell s "fill 15000" # more than the 8 MiB that the socket takes
	tell s "progress 0.5"
	end_stand s
	kill -CONT "$BUS"
}

# --- who may ---------------------------------------------------------------------------------------------------------

@test "nobody but root: refused by us where the bus lets everyone through" {
	need_root
	up open
	local method
	for method in "Calibrate string:quick" "Verify string:" Cancel Reload "Rollback uint64:1"; do
		# shellcheck disable=SC2086
		run as_nobody dbus-send --bus="$ADDRESS" --print-reply --dest=$NAME $OBJECT $NAME.$method
		[ "$status" -ne 0 ]
		holds "Error org.freedesktop.DBus.Error.AccessDenied: ${method%% *} is for root, not for user 65534"
	done
	printf 'format: 1\n' >"$T/policy"
	run client --as-nobody import "$T/policy"
	holds "org.freedesktop.DBus.Error.AccessDenied: Import is for root, not for user 65534"
	[ "$(as_nobody busctl --address="$ADDRESS" get-property $NAME $OBJECT $NAME State)" = 's "idle"' ]
	without "^calibrate\|^verify\|^cancel\|^reload\|^rollback\|^import" "$T/s.log"
	end_stand s
}

@test "calibrd's own policy: root owns and calls, everyone looks and hears, nobody else does more" {
	need_root
	up installed
	call Calibrate string:quick
	[ "$status" -eq 0 ]
	local method
	for method in "$NAME.Cancel" "$NAME.Reload" "$NAME.Rollback uint64:1" \
		"org.freedesktop.DBus.Properties.Set string:$NAME string:State variant:string:x"; do
		# shellcheck disable=SC2086
		run as_nobody dbus-send --bus="$ADDRESS" --print-reply --dest=$NAME $OBJECT $method
		[ "$status" -ne 0 ]
		holds "org.freedesktop.DBus.Error.AccessDenied: Rejected send message"
	done
	[ "$(as_nobody busctl --address="$ADDRESS" get-property $NAME $OBJECT $NAME State)" = 's "calibrating"' ]
	as_nobody busctl --address="$ADDRESS" introspect $NAME $OBJECT | grep -q '^\.PolicyPath .*emits-change'
	run as_nobody busctl --address="$ADDRESS" call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus \
		RequestName su $NAME.Other 0
	[ "$status" -ne 0 ]
	launch "$T/nobody" setpriv --reuid=65534 --regid=65534 --clear-groups dbus-monitor --address "$ADDRESS" \
		"type='signal',sender='$NAME'"
	until_said "$T/nobody" "NameAcquired"
	tell s "finish good all well"
	until_said "$T/nobody" 'string "all well"'
	grep -q "member=PropertiesChanged" "$T/nobody"
	end_stand s
}

# --- what is asked and told ------------------------------------------------------------------------------------------

@test "methods do what they say, and their errors have names and words" {
	need_root
	up open
	call Calibrate string:quick
	[[ $output =~ uint64\ 1$ ]]
	call Verify string:
	holds "Error $NAME.Error.Busy: calibration 1 runs"
	call Cancel
	[ "$status" -eq 0 ]
	call Cancel
	holds "Error $NAME.Error.NotFound: nothing runs"
	call Verify string:
	[[ $output =~ uint64\ 2$ ]]
	tell s "finish passed"
	call Calibrate string:often
	holds "Error org.freedesktop.DBus.Error.InvalidArgs: effort 'often': expected quick, standard or thorough"
	call Reload
	[ "$status" -eq 0 ]
	call Rollback uint64:3
	[[ $output =~ uint64\ 1$ ]]
	[ "$(property PolicyPath)" = 's "/etc/pageclear/policy.yaml"' ]
	run -0 grep -x "calibrate 1 quick\|cancel\|verify 2 \|reload\|rollback 3" "$T/s.log"
	[ "${#lines[@]}" -eq 5 ]

	local code
	for code in EBUSY:$NAME.Error.Busy ENOENT:$NAME.Error.NotFound EPERM:$NAME.Error.Forbidden \
		ESTALE:$NAME.Error.WrongHost EBADMSG:$NAME.Error.BadPolicy EFBIG:$NAME.Error.BadPolicy \
		EPROTONOSUPPORT:$NAME.Error.BadPolicy EINVAL:org.freedesktop.DBus.Error.InvalidArgs \
		ENOMEM:org.freedesktop.DBus.Error.NoMemory EIO:$NAME.Error.Failed; do
		tell s "refuse ${code%%:*} a reason \\xff"
		call Rollback uint64:1
		holds "Error ${code#*:}: a reason ?"
	done
	tell s "refuse EIO"
	call Reload
	holds "Error $NAME.Error.Failed: Input/output error"
	end_stand s
}

@test "Import: files and memfds are read from their beginning, all else is refused by name" {
	need_root
	up open
	printf 'format: 1\n# a policy\n' >"$T/policy"
	head -c 65537 /dev/zero >"$T/large"
	: >"$T/empty"
	[ "$(client import "$T/policy")" = 1 ]
	grep -qx "import 21 bytes" "$T/s.log"
	[ "$(client import memfd)" = 2 ]
	grep -qx "import 10 bytes" "$T/s.log"
	local kind="org.freedesktop.DBus.Error.InvalidArgs: a policy is read from a regular file or a memfd; this descriptor is"
	[ "$(client import pipe)" = "$kind a pipe" ]
	[ "$(client import socket)" = "$kind a socket" ]
	[ "$(client import "$T")" = "$kind a directory" ]
	[ "$(client import /dev/null)" = "$kind a character device" ]
	[ "$(client import "$T/empty")" = "org.freedesktop.DBus.Error.InvalidArgs: the policy's file is empty" ]
	# A container may not even open it.
	! dd if=/proc/kmsg count=0 status=none 2>/dev/null ||
		[ "$(client import /proc/kmsg)" = "org.freedesktop.DBus.Error.InvalidArgs: the policy's file is empty" ]
	[ "$(client import "$T/large")" = "$NAME.Error.BadPolicy: a policy of 65537 bytes, 65536 are the most" ]
	[ "$(client import memfd-large)" = "$NAME.Error.BadPolicy: a policy of 65537 bytes, 65536 are the most" ]
	[ "$(client import none)" = "org.freedesktop.DBus.Error.InconsistentMessage: Bad message" ]
	[ "$(grep -c ^import "$T/s.log")" -eq 2 ]
	[ "$(property Generation)" = "t 2" ]
	end_stand s
}

@test "PropertiesChanged tells what changed and nothing else, progress in hundredths; signals come after it" {
	need_root
	up open
	listen
	tell s "progress 0.5"
	[ "$(last_heard PropertiesChanged)" = '["org.pageclear.Calibrd1",{"Progress":{"type":"d","data":0.5}},[]]' ]
	tell s "progress 0.5099"
	tell s "state idle"
	tell s "reason it is busy"
	[ "$(last_heard PropertiesChanged)" = '["org.pageclear.Calibrd1",{"Reason":{"type":"s","data":"it is busy"}},[]]' ]
	[ "$(heard PropertiesChanged)" -eq 2 ]
	tell s "progress nan"
	tell s "progress 2"
	until_true more_than 3 '"member":"PropertiesChanged"' "$T/heard"
	[ "$(last_heard PropertiesChanged)" = '["org.pageclear.Calibrd1",{"Progress":{"type":"d","data":1}},[]]' ]

	call Calibrate string:
	tell s "finish noisy neighbours were loud"
	[ "$(last_heard CalibrationFinished)" = '[1,"noisy","neighbours were loud"]' ]
	grep -B1 '"member":"CalibrationFinished"' "$T/heard" | head -n 1 | grep -q '"State":{"type":"s","data":"idle"}'
	call Verify string:thorough
	tell s "finish beyond 3 cells"
	[ "$(last_heard VerificationFinished)" = '[2,"beyond",102,"3 cells"]' ]
	tell s "published 7 /run/pageclear/policy.yaml"
	[ "$(last_heard PolicyChanged)" = '[7,"/run/pageclear/policy.yaml"]' ]
	[ "$(property Generation PolicyPath)" = $'t 7\ns "/run/pageclear/policy.yaml"' ]
	end_stand s
}

@test "texts that are no UTF-8, or too long, do not hold the bus up" {
	up open
	listen
	tell s "phase a\\xffb\\xe2\\x82"
	[ "$(property Phase)" = 's "a?b??"' ]
	tell s "reason $(printf '\xc3\xa4%.0s' {1..1000})"
	[ "$(property Reason --json=short | jq -r .data)" = "$(printf '\xc3\xa4%.0s' {1..255})" ]
	tell s "published 3 /\\xff/$(printf 'x%.0s' {1..3000})"
	[ "$(last_heard PolicyChanged | jq -r '.[1]' | head -c 5)" = "/?/xx" ]
	without warning "$T/s.log"
	end_stand s
}

# --- bad manners -----------------------------------------------------------------------------------------------------

resident() {
	sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$1/status"
}

descriptors() {
	find "/proc/$1/fd" -mindepth 1 | wc -l
}

@test "10,000 calls of wrong types, counts, sizes and names: every one is answered, nothing is kept of any" {
	need_root
	up open
	run -0 client flood 1000
	lacks "went well"
	local memory files kinds
	memory=$(resident "$STAND_PID")
	files=$(descriptors "$STAND_PID")
	run -0 client flood 10000
	[ "$(awk '{n += $1} END {print n}' <<<"$output")" -eq 10000 ]
	lacks "went well"
	lacks "AccessDenied"
	holds "org.freedesktop.DBus.Error.InvalidArgs"
	holds "org.freedesktop.DBus.Error.UnknownMethod"
	holds "org.freedesktop.DBus.Error.PropertyReadOnly"
	holds "$NAME.Error.NotFound"
	lacks "NoReply"
	mapfile -t kinds < <(for ((i = 0; i < 20; i++)); do printf '%s\n' pipe socket "$T" /dev/zero; done)
	[ "$(client import "${kinds[@]}" | grep -c "this descriptor is a ")" -eq 80 ]
	[ "$(descriptors "$STAND_PID")" -eq "$files" ]
	# Sanitizers keep what was freed, and look for leaks themselves at the end.
	grep -qa __asan_init "$STAND" || [ "$(resident "$STAND_PID")" -lt $((memory + 512)) ]
	[ "$(client bad-path)" = "hung up" ]
	run -0 client --as-nobody flood 1000
	lacks "went well"
	holds "org.freedesktop.DBus.Error.AccessDenied"
	[ "$(property State)" = 's "idle"' ]
	without "^calibrate\|^verify\|^cancel\|^reload\|^rollback\|^import\|warning" "$T/s.log"
	end_stand s
}
