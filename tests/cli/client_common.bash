# What the files on calibctl and the bus share: a private dbus-daemon, and on it the real bus code with a made-up daemon
# behind it (tool-bus_stand), which does as it is told.

# bats sets output; calibrd_common sets the rest; BUS, DAEMON and STAND are for the tests.
# shellcheck disable=SC2034,SC2153,SC2154

load calibrd_common

make_client_folder() {
	make_folder
	unset NO_COLOR
	cp "$B/tool-bus_stand" "$W/"
	cat >"$W/bus.conf" <<-END
		<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN"
		 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
		<busconfig>
		 <listen>unix:path=$W/bus</listen>
		 <auth>EXTERNAL</auth>
		 <policy context="default">
		  <allow user="*"/>
		  <allow own="*"/>
		  <allow send_destination="*"/>
		  <allow receive_sender="*"/>
		 </policy>
		</busconfig>
	END
}

# For each test, and after it.
make_client() {
	export DBUS_SYSTEM_BUS_ADDRESS="unix:path=$W/bus"
	LOG=$BATS_TEST_TMPDIR/log
	STAND=$BATS_TEST_TMPDIR/stand
}

end_client() {
	end_all
	rm -f "$W/bus" "$W/fifo"
}

# A bus without calibrd; its process in BUS.
bus() {
	command -v dbus-daemon >/dev/null || skip "no dbus-daemon (package dbus)"
	launch "$BATS_TEST_TMPDIR/bus" dbus-daemon --config-file="$W/bus.conf" --nofork --nopidfile --nosyslog
	BUS=$PID
	until_true test -S "$W/bus"
}

# The bus with a calibrd that does as it is told; its process in DAEMON.
stand() {
	bus
	launch "$STAND" "$W/tool-bus_stand" "$DBUS_SYSTEM_BUS_ADDRESS" "$W/fifo"
	DAEMON=$PID
	until_said "$STAND" ready
	until_true is_there
}

is_there() {
	local code=0
	"$CTL" wait --timeout 0 >/dev/null 2>&1 || code=$?
	[ "$code" -lt 3 ]
}

# Each of them, and it has been done when this returns.
tell() {
	local line before
	for line in "$@"; do
		before=$(grep -c '^done ' "$STAND" || true)
		echo "$line" >"$W/fifo"
		until_true more_done "$before"
	done
}

more_done() {
	[ "$(grep -c '^done ' "$STAND")" -gt "$1" ]
}

# calibctl in the background, its words in LOG: standard output and error together.
ctl() {
	launch "$LOG" env --default-signal=INT "$CTL" "$@"
}

# What it said is in output then.
ends_with() {
	reap
	run cat "$LOG"
	[ "$STATUS" -eq "$1" ] || {
		echo "exit status $STATUS, expected $1: $output"
		return 1
	}
}
