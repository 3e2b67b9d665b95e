#!/usr/bin/env bats
# calibrd and the system bus of a booted system: none at first, one that comes late and goes, and who may do what on it
# under the installed D-Bus policy. What the methods do is tested in tests/cli/bus.bats, on a private bus.

# The commands of `inside` have arguments of their own; bats sets output.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154

load ../cli/calibrd_common
load container

setup_file() {
	container_start
}

teardown_file() {
	container_end
}

setup() {
	[ -z "$IMPOSSIBLE" ] || skip "$IMPOSSIBLE"
	inside test -e /lib/systemd/system/dbus.service || skip "dbus is not installed"
}

name=(org.pageclear.Calibrd1 /org/pageclear/Calibrd1)


is_on_the_bus() {
	inside busctl status org.pageclear.Calibrd1 >/dev/null 2>&1
}

@test "without a bus: started, and said once" {
	run inside busctl status
	[ "$status" -ne 0 ]
	run -0 inside systemctl start calibrd
	until_true status_is "Measuring: pass *"
	[ "$(property ActiveState)" = active ]
	until_true said_no_bus
	quiet
}

said_no_bus() {
	run inside journalctl -q -u calibrd -o cat --no-pager
	[ "$(grep -c "no bus at " <<<"$output")" -eq 1 ]
}

@test "a bus that comes late is joined" {
	inside systemctl start dbus.socket dbus.service
	until_true is_on_the_bus
	[ "$(inside busctl get-property "${name[@]}" org.pageclear.Calibrd1 State)" = 's "calibrating"' ]
}

@test "what introspection tells agrees with the installed interface" {
	local told described
	told=$(inside busctl introspect --xml-interface "${name[@]}" | members)
	described=$(inside cat /usr/share/dbus-1/interfaces/org.pageclear.Calibrd1.xml | members)
	[ -n "$described" ]
	diff <(echo "$described") <(echo "$told")
}

# Of calibrd's own interface: a line each of method, property, signal and their arguments.
members() {
	python3 -c '
import sys, xml.etree.ElementTree as tree
for interface in tree.fromstring(sys.stdin.read()).iter("interface"):
    if interface.get("name") == "org.pageclear.Calibrd1":
        for member in sorted(interface, key=lambda m: (m.tag, m.get("name"))):
            print(member.tag, member.get("name"), member.get("type", ""), member.get("access", ""),
                  *[(a.get("type"), a.get("direction", "out")) for a in member.iter("arg")])'
}

@test "anybody may look, only root may change anything" {
	run -0 as_nobody busctl introspect "${name[@]}"
	run -0 as_nobody busctl get-property "${name[@]}" org.pageclear.Calibrd1 Topology
	for method in "Calibrate s quick" "Verify s quick" Cancel Reload "Rollback t 1"; do
		# shellcheck disable=SC2086 # a method and its arguments
		run -1 as_nobody busctl call "${name[@]}" org.pageclear.Calibrd1 $method
		holds "denied"
	done
	status_is "Measuring: *"
}

@test "root cancels, asks for a calibration, and reloads" {
	run -0 inside busctl call "${name[@]}" org.pageclear.Calibrd1 Cancel
	until_true status_is "Idle*"
	run -0 inside busctl call "${name[@]}" org.pageclear.Calibrd1 Calibrate s quick
	until_true status_is "Measuring: pass *"
	run -1 inside busctl call "${name[@]}" org.pageclear.Calibrd1 Calibrate s quick
	run -0 inside busctl call "${name[@]}" org.pageclear.Calibrd1 Reload
	status_is "Measuring: pass *"
}

@test "the bus goes and comes again: so does calibrd, and it measures on" {
	local pid
	pid=$(main_pid)
	inside systemctl stop dbus.service dbus.socket
	sleep 1
	[ "$(property ActiveState)" = active ]
	inside systemctl start dbus.socket dbus.service
	until_true is_on_the_bus
	[ "$(main_pid)" = "$pid" ]
	inside systemctl stop calibrd
	run inside journalctl -q -u calibrd -p err -o cat --no-pager
	[ -z "$output" ]
}
