# What the files on the real calibrd share: a folder that any user may enter, processes that never outlive their test,
# private mount namespaces. W is the file's own folder; B the build folder.

# bats sets output and stderr; STATUS is for who reaps; names hold nothing that ls would change; the commands of `apart`
# have arguments of their own.
# shellcheck disable=SC2012,SC2016,SC2034,SC2154

bats_require_minimum_version 1.5.0

load ../cli/common

# bats' own folders are for their owner alone, and calibrd is also run as nobody here.
make_folder() {
	export B=${B:-build} W
	W=$(mktemp -d "${TMPDIR:-/tmp}/calibrd-XXXXXX")
	chmod 755 "$W"
	mkdir -m 777 "$W/known"
	cp "$B/calibrd" "$B/calibctl" "$W/"
	[ ! -e "$B/calibrd-faulty" ] || cp "$B/calibrd-faulty" "$W/"
	export CALIBRD=$W/calibrd CTL=$W/calibctl
	unset JOURNAL_STREAM NOTIFY_SOCKET PAGECLEAR_POLICY
}

# --- processes -------------------------------------------------------------------------------------------------------

# In the background, with its own log; its id in PID. For `reap`, or for end_all; it ends with whoever started it.
launch() {
	local log=$1
	shift
	: >"$log" # before anyone looks into it
	setpriv --pdeathsig KILL "$@" >>"$log" 2>&1 </dev/null 3>&- &
	PID=$!
	echo "$PID" >>"$W/pids"
}

# The exit status of PID, in STATUS.
reap() {
	STATUS=0
	wait "$PID" || STATUS=$?
}

child_of() {
	local child
	read -r child _ <"/proc/$1/task/$1/children"
	echo "$child"
}

# Until something is so: half a minute is no measurement, just when to give up.
until_true() {
	local i
	for ((i = 0; i < 600; i++)); do
		! "$@" || return 0
		sleep 0.05
	done
	echo "never came true: $*" >&2
	return 1
}

until_said() {
	until_true grep -q -- "$2" "$1" || {
		cat "$1" >&2
		return 1
	}
}

is_gone() {
	[ ! -e "/proc/$1" ] || grep -q '^State:.*[ZX]' "/proc/$1/status"
}

# Only what launch started, and only if it is still ours: a number may have been given away since. A worker dies with
# its parent.
end_all() {
	local pid
	[ ! -e "$W/pids" ] || while read -r pid; do
		[ "$(readlink "/proc/$pid/cwd" 2>/dev/null)" != "$PWD" ] || ! grep -q "$W" "/proc/$pid/cmdline" || kill -9 "$pid"
	done <"$W/pids"
	rm -f "$W/pids"
}

as_nobody() {
	setpriv --reuid=65534 --regid=65534 --clear-groups "$@"
}

# --- what is asked often ---------------------------------------------------------------------------------------------

# In a mount namespace of its own: whatever is mounted there ends with it.
apart() {
	unshare -m --propagation private bash -euc "$@"
}

# Where so many KiB of memory are available: scarce KIB PROGRAM WORD...
scarce() {
	printf 'MemTotal: %s kB\nMemAvailable: %s kB\n' "$1" "$1" >"$BATS_TEST_TMPDIR/meminfo"
	apart 'mount --bind "$1" /proc/meminfo; shift; exec "$@"' none "$BATS_TEST_TMPDIR/meminfo" "${@:2}"
}

need_namespace() {
	apart 'mount -t tmpfs tmpfs /mnt' none 2>/dev/null || skip "no private mount namespace to be had (not root?)"
}

ask() {
	sqlite3 -cmd ".timeout 10000" "$1" "$2"
}

is_sound() {
	[ "$(ask "$1" 'PRAGMA integrity_check; PRAGMA foreign_key_check')" = ok ]
}

calibrations() {
	ask "$1" "SELECT count(*) FROM calibration"
}

generation() {
	sed -n 's/^generation: //p' "$1"
}

# Tables of an intent and prior, one a number of threads that was measured: tables INTENT PRIOR POLICY
tables() {
	grep -A1 -x -- "- intent: $1" "$3" | grep -c "prior: $2}"
}

topology() {
	sed -n 's/^  topology: "\(.*\)"/\1/p' "$1"
}

# A copy of what was measured, in N.
copy_known() {
	N=$BATS_TEST_TMPDIR/n
	cp -a "$W/known" "$N"
	P=$N/policy.yaml
	D=$N/calibrd.db
}

# Nothing known yet, in N.
new_folder() {
	N=$BATS_TEST_TMPDIR/n
	rm -rf "$N"
	mkdir "$N"
	P=$N/policy.yaml
	D=$N/calibrd.db
}

once() {
	"$CALIBRD" --once --effort quick --database "$D" --policy "$P" "$@"
}

# A machine may be so busy that not one sample comes through undisturbed: that fails no test, and passes none. Looks at
# output.
skip_if_too_busy() {
	[[ $output != *"this host is too slow or too busy for effort"* ]] || skip "this machine is too busy to measure anything"
}

# What "$@" measures, a few times if need be, until it succeeds: into an empty $W/known, its words in a log.
measure_known() {
	local log=$1
	shift
	for ((i = 0; i < 6; i++)); do
		rm -f "$W"/known/*
		! "$@" >"$log" 2>&1 </dev/null 3>&- || return 0
	done
	cat "$log"
	return 1
}

# The other way round than grep: succeeds where no line has it.
without() {
	run ! grep -n -- "$1" "$2"
	[ "$status" -eq 1 ]
}

# Nothing but what belongs there, in any order.
only_there() {
	local folder=$1
	shift
	diff <(printf '%s\n' "$@" | sort) <(ls -A "$folder" | sort)
}

# On a busy machine a calibration may be noisy, and would be repeated at each start. What is tested is not the noise.
call_it_good() {
	ask "$1" "UPDATE calibration SET quality = 'good' WHERE state = 'done'"
}

# A text as a generation's of a database: publish DATABASE GENERATION FILE, with the hash that the database checks it by.
publish() {
	/usr/bin/python3 - "$@" <<-'END'
		import sqlite3, sys
		text = open(sys.argv[3]).read()
		value = 0xcbf29ce484222325
		for byte in text.encode():
		    value = (value ^ byte) * 0x100000001b3 % 2**64
		with sqlite3.connect(sys.argv[1]) as db:
		    db.execute("INSERT INTO published (generation, topology, source, at, yaml, hash) SELECT ?, id, 'import', 1000, ?, ?"
		               " FROM topology", (sys.argv[2], text, f"{value:016x}"))
	END
}
