#!/usr/bin/env bats
# The installed database where /var/lib is missing, read-only, full or comes back: calibrd keeps to its work, says once
# what is wrong and what to do, and loses nothing. In private mount namespaces, on calibrd with a simulated meter.

# bats sets output; calibrd_common sets the rest; the commands of `apart` have arguments of their own.
# shellcheck disable=SC2016,SC2153,SC2154

load calibrd_common

HOME_DB=/var/lib/pageclear/calibrd.db
AWAY_DB=/run/pageclear/calibrd.db

setup_file() {
	make_folder
	cp "$B/calibrd-fast" "$W/calibrd"
	printf "effort: quick\nquiet:\n  wait_seconds: 0\n" >"$W/c.yaml"
}

setup() {
	need_namespace
	new_folder
	LOG=$BATS_TEST_TMPDIR/log
}

teardown() {
	end_all
}

teardown_file() {
	rm -rf "$W"
}

# Commands with a /var/lib and a /run of their own. `once` there uses the places of an installed calibrd but for the
# policy's; what it says is in the log.
installed() {
	apart '
		mount -t tmpfs -o size=32m tmpfs /run
		mount -t tmpfs -o "${VAR:-size=32m}" tmpfs /var/lib
		once() { echo "-- once"; "$CALIBRD" --once --config "$W/c.yaml" --policy "$N/policy.yaml" "$@"; }
		calibrations() { sqlite3 "$1" "SELECT count(*) FROM calibration WHERE state = '\''done'\''"; }
		sound() { [ "$(sqlite3 "$1" "PRAGMA integrity_check")" = ok ]; }
		home='$HOME_DB' away='$AWAY_DB'
	'"$1" >"$LOG" 2>&1 || {
		cat "$LOG"
		return 1
	}
	run -0 cat "$LOG"
}

@test "a read-only /var: measured once a boot, said with the remedy, and brought home when it can be written" {
	export CALIBRD W N
	VAR=ro installed '
		once
		[ -s $away ]
		sound $away
		once
		[ "$(calibrations $away)" -eq 1 ]
		once --force
		[ "$(calibrations $away)" -eq 2 ]
		mount -o remount,rw /var/lib
		once
		[ ! -e $away ]
		sound $home
		[ "$(calibrations $home)" -eq 2 ]
		once
		ls -A /var/lib/pageclear /run/pageclear
	'
	[ "$(grep -c "warning: /var/lib/pageclear: Read-only file system: measurements are kept in $AWAY_DB till the next boot; let it be written there, or name another place in calibrd.yaml" "$LOG")" -eq 3 ]
	[ "$(grep -c "$HOME_DB can be written: what $AWAY_DB held was brought there" "$LOG")" -eq 1 ]
	[ "$(grep -c "measuring for about" "$LOG")" -eq 2 ]
	lacks "error:"
	[[ $output == *$'\n/run/pageclear:\ncalibrd.db.lock\n\n/var/lib/pageclear:\ncalibrd.db\ncalibrd.db.lock' ]]
}

@test "a /var that becomes read-only: what is known there is known on" {
	export CALIBRD W N
	installed '
		once
		mount -o remount,ro /var/lib
		once
		[ "$(calibrations $away)" -eq 1 ]
		once --force
		mount -o remount,rw /var/lib
		once
		[ "$(calibrations $home)" -eq 2 ]
		sound $home
	'
	[ "$(grep -c "measuring for about" "$LOG")" -eq 2 ]
	lacks "without those of before"
	lacks "error:"
}

@test "a /var that is missing" {
	export CALIBRD W N
	installed '
		mkdir /var/lib/empty
		mount --bind /var/lib/empty /var
		once
		[ "$(calibrations $away)" -eq 1 ]
		umount /var
		once
		[ "$(calibrations $home)" -eq 1 ]
	'
	holds "warning: /var/lib/pageclear: No such file or directory: measurements are kept in $AWAY_DB till the next boot; make its folder"
	[ "$(grep -c "measuring for about" "$LOG")" -eq 1 ]
}

@test "a full /var: at the start and in the middle of things" {
	export CALIBRD W N
	installed '
		once
		dd if=/dev/zero of=/var/lib/fill bs=4096 status=none 2>/dev/null || true
		once
		once --force
		[ "$(calibrations $away)" -eq 2 ]
		sound $home
		sound $away
		rm /var/lib/fill
		once
		[ "$(calibrations $home)" -eq 2 ]
		sound $home
	'
	holds "warning: /var/lib/pageclear: No space left on device: measurements are kept in $AWAY_DB till the next boot; make room there"
	[ "$(grep -c "measuring for about" "$LOG")" -eq 2 ]
	lacks "error:"
}

@test "neither /var nor /run: refused in words, the policy stands" {
	export CALIBRD W N
	installed '
		once
		cp "$N/policy.yaml" "$N/before.yaml"
		mount -o remount,ro /var/lib
		mount -o remount,ro /run
		once && exit 1
		cmp "$N/policy.yaml" "$N/before.yaml"
	'
	holds "error: /var/lib/pageclear: Read-only file system; nor can it be in its stead: /run/pageclear: Read-only file system"
}

@test "two at once are one too many, wherever the first one writes" {
	export CALIBRD W N
	VAR=ro installed '
		"$CALIBRD" --config "$W/c.yaml" --policy "$N/policy.yaml" &
		for ((i = 0; i < 600; i++)); do [ ! -e "$N/policy.yaml" ] || break; sleep 0.05; done
		once && exit 1
		mount -o remount,rw /var/lib
		once && exit 1
		kill $!
		wait $!
		once
	'
	[ "$(grep -c "error: $AWAY_DB: process [0-9]* is writing it" "$LOG")" -eq 2 ]
	holds "was brought there"
}

@test "the daemon brings it home by itself when it looks again" {
	export CALIBRD W N
	VAR=ro installed '
		"$CALIBRD" --config "$W/c.yaml" --policy "$N/policy.yaml" &
		for ((i = 0; i < 600; i++)); do [ ! -e "$N/policy.yaml" ] || break; sleep 0.05; done
		mount -o remount,rw /var/lib
		kill -HUP $!
		for ((i = 0; i < 600; i++)); do [ -e $away ] || break; sleep 0.05; done
		kill $!
		wait $!
		[ ! -e $away ]
		sound $home
		[ "$(calibrations $home)" -eq 1 ]
	'
	[ "$(grep -c "measurements are kept in" "$LOG")" -eq 1 ]
	holds "was brought there"
	lacks "error:"
}
