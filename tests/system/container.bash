# The installed calibrd under a real systemd: a container that boots this very system from an overlay, so that nothing of
# it is changed. A file's tests follow one another in one container. Takes root, systemd-nspawn and overlayfs; where they
# can't be had IMPOSSIBLE says why, and `setup` of the file skips. To be loaded after ../cli/calibrd_common.

# The commands of `inside` have arguments of their own; bats sets output; others use what is set here.
# shellcheck disable=SC2016,SC2034,SC2154

# Mounts live in a namespace of the container's own and end with it; its control groups in one that is removed. Booted is
# little more than systemd: none of the services that this system may have, and no network. A bus comes when a test
# starts one.
boot='
	merged=$W/root/merged
	for tree in /sys/fs/cgroup /sys/fs/cgroup/systemd /sys/fs/cgroup/unified; do
		[ ! -e $tree/cgroup.procs ] || { mkdir "$tree/$GROUP" && echo $$ >"$tree/$GROUP/cgroup.procs"; }
	done
	mount -t tmpfs tmpfs "$W/root"
	mkdir "$W/root/upper" "$W/root/work" "$merged"
	mount -t overlay -o "lowerdir=/,upperdir=$W/root/upper,workdir=$W/root/work" overlay "$merged"
	echo mounted
	rm -rf "$merged/etc/pageclear" "$merged/usr/lib/pageclear" "$merged/var/lib/pageclear"
	rm -f "$merged/usr/lib/systemd/system/sockets.target.wants/dbus.socket"
	make -s B="$B" install DESTDIR="$merged"
	printf "effort: quick\nquiet: {most_percent: 100}\n" >"$merged/etc/pageclear/calibrd.yaml" # a busy host is not waited for
	echo installed
	mount -t tmpfs tmpfs /run
	exec systemd-nspawn --quiet -D "$merged" --boot --register=no --keep-unit --console=pipe --link-journal=no \
		--private-network systemd.unit=basic.target
'

container_start() {
	cd "$BATS_TEST_DIRNAME/../.." || return
	make_folder
	export IMPOSSIBLE="" LEADER="" NSPAWN="" GROUP=pageclear-$$ LC_ALL=C
	mkdir "$W/root"
	if [ "$(id -u)" -ne 0 ]; then
		IMPOSSIBLE="not root: no container to be had"
	elif ! type systemd-nspawn nsenter unshare >/dev/null 2>&1; then # false if one is missing
		IMPOSSIBLE="systemd-nspawn, nsenter or unshare is missing"
	else
		launch "$W/boot.log" unshare -m --propagation private bash -euc "$boot"
		NSPAWN=$PID
		until_true is_decided
		grep -qx mounted "$W/boot.log" || IMPOSSIBLE="no overlay to be had: $(cat "$W/boot.log")"
		[ -n "$IMPOSSIBLE" ] || grep -qx installed "$W/boot.log" || { cat "$W/boot.log"; return 1; }
		[ -n "$IMPOSSIBLE" ] || { until_true is_booted && ! is_gone "$NSPAWN"; } ||
			IMPOSSIBLE="no container came up: $(tail -n 5 "$W/boot.log")"
	fi
}

is_decided() {
	grep -qx installed "$W/boot.log" || is_gone "$NSPAWN"
}

is_booted() {
	! is_gone "$NSPAWN" || return 0
	LEADER=$(child_of "$NSPAWN")
	[ -n "$LEADER" ] && [[ $(inside systemctl is-system-running 2>/dev/null) =~ ^(running|degraded)$ ]]
}

container_end() {
	[ -z "$LEADER" ] || kill -KILL "$LEADER" || true
	[ -z "$NSPAWN" ] || until_true is_gone "$NSPAWN"
	end_all
	for tree in /sys/fs/cgroup /sys/fs/cgroup/systemd /sys/fs/cgroup/unified; do
		[ ! -d "$tree/$GROUP" ] || find "$tree/$GROUP" -depth -type d -exec rmdir '{}' ';'
	done
	rm -rf "$W"
}

# --- in it -----------------------------------------------------------------------------------------------------------

inside() {
	nsenter -t "$LEADER" -a "$@" </dev/null 3>&-
}

# The same for what needs a shell.
inside_sh() {
	inside bash -euc "$@"
}

as_nobody() {
	inside setpriv --reuid nobody --regid nogroup --clear-groups "$@"
}

property() {
	inside systemctl show -P "$1" calibrd
}

status_is() {
	# shellcheck disable=SC2053 # a pattern on purpose
	[[ $(property StatusText) == $1 ]]
}

main_pid() {
	property MainPID
}

database() {
	inside sqlite3 -cmd ".timeout 10000" /var/lib/pageclear/calibrd.db "$1"
}

# What the container's calibrd.yaml says until a test changes it.
quick="effort: quick"
any_time="quiet: {most_percent: 100}"

# MESSAGE_IDs, see log.h.
published=e69cd060822ff58b8973f7baf9a79652

configure() {
	inside_sh 'printf "%s\n" "$@" >/etc/pageclear/calibrd.yaml' configure "$@"
}

# What the unit's journal has of this level and above since the last call, in output. No entry is exit status 1 or 0,
# as the cursor has it.
journal() {
	inside journalctl --sync
	run inside journalctl -q -u calibrd -p "$1" -o cat --no-pager --cursor-file="/tmp/cursor-$1"
}

# A busy machine may have found it noisy, and would measure again: not what is tested.
call_it_good_here() {
	database "UPDATE calibration SET quality = 'good' WHERE state = 'done'"
	inside systemctl reload calibrd
	until_true status_is "Idle: *"
}

# Settings of the unit for one test, and back.
override() {
	inside_sh 'folder=/run/systemd/system/calibrd.service.d
		mkdir -p $folder
		printf "%s\n" "[Service]" "$@" >$folder/test.conf
		systemctl daemon-reload' override "$@"
}

no_override() {
	inside_sh 'rm -rf /run/systemd/system/calibrd.service.d; systemctl daemon-reload'
}

# No warning since the last call, but for those with one of these words.
quiet() {
	journal warning
	for word in "$@"; do
		output=$(grep -v -e "$word" <<<"$output" || true)
	done
	[ -z "$output" ] || {
		echo "$output"
		return 1
	}
}

# --- figures, never judged -------------------------------------------------------------------------------------------

figure() {
	echo "# $*" >&3
}

# Milliseconds of what follows, in MS.
timed() {
	local from=${EPOCHREALTIME/./}
	"$@"
	MS=$(((${EPOCHREALTIME/./} - from) / 1000))
}

median() {
	printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"
}

# From the start of the unit, and of the program, to READY=1.
ready_times() {
	local unit program ready
	unit=$(property InactiveExitTimestampMonotonic)
	program=$(property ExecMainStartTimestampMonotonic)
	ready=$(property ActiveEnterTimestampMonotonic)
	echo "$(((ready - unit) / 1000)) ms after its start, $(((ready - program) / 1000)) ms after calibrd's"
}

memory() {
	inside awk '/^(VmHWM|VmRSS|RssAnon|RssFile)/ { printf "%s %d KiB ", $1, $2 }' "/proc/$(main_pid)/status"
}

# No wake-up in three seconds, unless it was one to tell the watchdog.
sleeps() {
	local before told
	before=$(switches "$1")
	told=$(property WatchdogTimestampMonotonic)
	sleep 3
	[ "$(switches "$1")" = "$before" ] || {
		[ "$(property WatchdogTimestampMonotonic)" != "$told" ] && sleeps "$1"
	}
}

switches() {
	inside awk '/ctxt_switches/ { sum += $2 } END { print sum }' "/proc/$1/status"
}
