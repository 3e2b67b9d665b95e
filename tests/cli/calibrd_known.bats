#!/usr/bin/env bats
# calibrd --once where a calibration is known: what is published without measuring, when it measures again, and what it
# makes of a database or a folder that is not as it should be. One real calibration, of quick effort and as nobody where
# there is a choice, is copied by most tests.

# bats sets output and stderr; the commands of `apart` have arguments of their own.
# shellcheck disable=SC2016,SC2153,SC2154

load calibrd_common

setup_file() {
	make_folder
	local drop=()
	[ "$(id -u)" -ne 0 ] || drop=(setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs)
	measure_known "$W/log" env -C / "${drop[@]}" \
		"$CALIBRD" --once --effort quick --database "$W/known/calibrd.db" --policy "$W/known/policy.yaml"
	cp "$W/known/policy.yaml" "$W/measured.yaml"
	call_it_good "$W/known/calibrd.db"
	"$CALIBRD" --once --effort quick --database "$W/known/calibrd.db" --policy "$W/known/policy.yaml" 2>"$W/log-again"
}

teardown() {
	end_all
}

teardown_file() {
	rm -rf "$W"
}

# --- a known calibration ---------------------------------------------------------------------------------------------

@test "one calibration, as any user: a policy that readers take, a sound database, nothing else" {
	cat "$W/log"
	grep -q "this topology has not been measured yet" "$W/log"
	grep -q "published generation 1 in $W/known/policy.yaml" "$W/log"
	only_there "$W/known" calibrd.db calibrd.db.lock policy.yaml
	is_sound "$W/known/calibrd.db"
	[ "$(ask "$W/known/calibrd.db" "SELECT state, effort FROM calibration")" = "done|quick" ]
	[ "$(stat -c %a "$W/known/policy.yaml")" = 644 ]
	PAGECLEAR_POLICY=$W/known/policy.yaml run -0 "$CTL" --database "$W/known/calibrd.db" show --json
	jq -e '[.clear[] | select(.threads == 1)] | length == 7' <<<"$output"
	[ "$(ask "$W/known/calibrd.db" "SELECT yaml FROM published WHERE generation = 1")" = "$(cat "$W/measured.yaml")" ]
	need_root
	[ "$(stat -c %u "$W/known/calibrd.db")" = 65534 ]
}

@test "paths come from calibrd.yaml, and the command line leads before it" {
	copy_known
	mkdir "$N/other"
	printf 'database: %s\npolicy: %s\neffort: thorough\n' "$D" "$N/other/policy.yaml" >"$N/c.yaml"
	run -0 "$CALIBRD" --once --config "$N/c.yaml" --effort quick
	grep -q kernel "$N/other/policy.yaml"
	run -0 "$CALIBRD" --once --config "$N/c.yaml" --effort quick --policy "$N/third.yaml"
	grep -q kernel "$N/third.yaml"
	[ "$(calibrations "$D")" -eq 1 ]
}

@test "started again: nothing is measured, the file stays to the byte" {
	copy_known
	local inode
	inode=$(stat -c %i "$P")
	run -0 once
	holds "in $P is up to date"
	lacks "measuring"
	cmp "$P" "$W/known/policy.yaml"
	[ "$(stat -c %i "$P")" = "$inode" ]
	[ "$(stat -c %Y "$P")" = "$(stat -c %Y "$W/known/policy.yaml")" ]
	[ "$(calibrations "$D")" -eq 1 ]
	only_there "$N" calibrd.db calibrd.db.lock policy.yaml
}

@test "a policy that was removed is published again from the database" {
	copy_known
	rm "$P"
	run -0 once
	lacks "measuring"
	[ "$(generation "$P")" -gt "$(generation "$W/known/policy.yaml")" ]
	diff <(grep -v '^generation' "$P") <(grep -v '^generation' "$W/known/policy.yaml")
}

@test "excluded kernels and pins are honoured without measuring, and taken back with their removal" {
	copy_known
	local best
	best=$(grep -o 'kernel: [a-z0-9]*nt\b' "$P" | head -n 1)
	printf 'pins:\n  - {intent: cold, prior: flushed, from: 1M, to: 64M, kernel: movnti}\n' >"$N/c.yaml"
	[ -z "$best" ] || printf 'exclude: [%s]\n' "${best#kernel: }" >>"$N/c.yaml"
	run -0 once --config "$N/c.yaml"
	lacks "measuring"
	grep -q -- '- {from: 1048576, kernel: movnti, chunk: 0, pinned: true}' "$P"
	grep -q -- '- {from: 67108864, ' "$P"
	[ "$(grep -c pinned "$P")" -eq "$(tables cold flushed "$P")" ]
	[ -z "$best" ] || without "$best\\b" "$P"
	run -0 "$CTL" --policy "$P" --database "$D" explain 4M cold --prior flushed
	holds pinned
	[ "$(calibrations "$D")" -eq 1 ]
	run -0 once
	lacks "measuring"
	without pinned "$P"
}

@test "more pins than a policy can hold are refused in words" {
	copy_known
	echo "pins:" >"$N/c.yaml"
	for ((i = 1; i <= 32; i++)); do
		echo "  - {intent: cold, prior: flushed, from: ${i}M, to: $((i * 1024 + 1))K, kernel: movnti}" >>"$N/c.yaml"
	done
	run -1 once --config "$N/c.yaml"
	holds "more pins than a policy can hold"
	cmp "$P" "$W/known/policy.yaml"
}

@test "an edited policy is kept beside, with a warning" {
	copy_known
	local generation
	generation=$(generation "$P")
	sed -i 's/kernel: [a-z0-9]*/kernel: stosb/' "$P"
	cp "$P" "$N/edited"
	run -0 once
	holds "warning: $P was not what calibrd had published: kept as $P.edited-$generation"
	cmp "$P.edited-$generation" "$N/edited"
	diff <(grep -v '^generation' "$P") <(grep -v '^generation' "$W/known/policy.yaml")
	echo nonsense >"$P"
	run -0 once
	holds "kept as $P.edited-"
	[ "$(calibrations "$D")" -eq 1 ]
}

@test "a policy of another topology is withdrawn at once" {
	new_folder
	local log=$BATS_TEST_TMPDIR/log
	sed 's/topology: ".*"/topology: "0123456789ab"/' "$W/known/policy.yaml" >"$P"
	launch "$log" "$CALIBRD" --once --effort quick --database "$D" --policy "$P"
	until_said "$log" "measuring: [0-9]* %"
	[ ! -e "$P" ]
	kill "$PID"
	reap
	[ "$STATUS" -eq 1 ]
	grep -q "withdrew $P: it was made for another topology" "$log"
	only_there "$N" calibrd.db calibrd.db.lock "policy.yaml.edited-$(generation "$W/known/policy.yaml")"
}

@test "a noisy calibration never replaces a good policy, not even at the next start" {
	copy_known
	ask "$D" "UPDATE calibration SET quality = 'noisy'"
	launch "$BATS_TEST_TMPDIR/log" "$CALIBRD" --once --effort quick --database "$D" --policy "$P"
	until_said "$BATS_TEST_TMPDIR/log" "measuring: [0-9]* %"
	cmp "$P" "$W/known/policy.yaml"
	kill "$PID"
	reap
	grep -q "the known calibration is noisy" "$BATS_TEST_TMPDIR/log"
	cmp "$P" "$W/known/policy.yaml"
}

@test "more effort than the known calibration had, or other software: measured again, with the old policy in force" {
	local log=$BATS_TEST_TMPDIR/log
	copy_known
	launch "$log" "$CALIBRD" --once --effort standard --database "$D" --policy "$P"
	until_said "$log" "measuring: [0-9]* %"
	grep -q "made with less effort" "$log"
	kill "$PID"
	reap
	ask "$D" "UPDATE calibration SET soft = 'another kernel'"
	launch "$log" "$CALIBRD" --once --effort quick --database "$D" --policy "$P"
	until_said "$log" "measuring: [0-9]* %"
	grep -q "software or kernels changed" "$log"
	kill "$PID"
	reap
	cmp "$P" "$W/known/policy.yaml"
}

@test "--force adds a calibration" {
	copy_known
	run once --force
	skip_if_too_busy
	[ "$status" -eq 0 ]
	holds "asked to measure again"
	[ "$(calibrations "$D")" -eq 2 ]
	[ "$(ask "$D" "SELECT count(*) FROM calibration WHERE state = 'done'")" -eq 2 ]
	is_sound "$D"
	run -0 "$CTL" --policy "$P" --database "$D" show
	only_there "$N" calibrd.db calibrd.db.lock policy.yaml
}

# --- the database ----------------------------------------------------------------------------------------------------

@test "a damaged database is renamed aside and measured again; until then the policy stands" {
	copy_known
	local log=$BATS_TEST_TMPDIR/log
	dd if=/dev/urandom of="$D" bs=4096 seek=1 count=20 conv=notrunc status=none
	cp "$D" "$BATS_TEST_TMPDIR/damaged"
	launch "$log" "$CALIBRD" --once --effort quick --database "$D" --policy "$P"
	until_said "$log" "measuring: [0-9]* %"
	cmp "$P" "$W/known/policy.yaml"
	reap
	output=$(cat "$log")
	skip_if_too_busy
	echo "$output"
	[ "$STATUS" -eq 0 ]
	grep -q "warning: $D was damaged: it is kept as $D.damaged-1, and a new one begun" "$log"
	cmp "$D.damaged-1" "$BATS_TEST_TMPDIR/damaged"
	is_sound "$D"
	[ "$(ask "$D" "SELECT state FROM calibration")" = "done" ]
	[ "$(generation "$P")" -gt "$(generation "$W/known/policy.yaml")" ]
	[ "$(generation "$P")" = "$(ask "$D" "SELECT max(generation) FROM published")" ]
}

@test "a database of another program or of a newer version is left as it is, and so is the policy" {
	copy_known
	for change in "application_id = 99" "user_version = 99"; do
		cp "$W/known/calibrd.db" "$D"
		ask "$D" "PRAGMA $change"
		cp "$D" "$N/as-it-was"
		run -1 once
		case $change in
		app*) holds "error: $D: a database of another program (application_id 0x63), left as it is" ;;
		user*) [[ $output =~ "error: $D: made by a newer version (schema 99; this one knows schemas up to "[0-9]+ ]] ;;
		esac
		cmp "$D" "$N/as-it-was"
		cmp "$P" "$W/known/policy.yaml"
	done
	only_there "$N" as-it-was calibrd.db calibrd.db.lock policy.yaml
}

@test "a read-only database: said, exit status 1, the policy stands" {
	copy_known
	if [ "$(id -u)" -ne 0 ]; then
		chmod a-w "$N"
		run -1 once
		holds "error: $N: Permission denied"
		chmod u+w "$N"
	else
		need_namespace
		run -1 apart 'mount --bind "$1" "$1"; mount -o remount,ro,bind "$1"
			exec "$2" --once --effort quick --database "$1/calibrd.db" --policy "$1/policy.yaml"' ro "$N" "$CALIBRD"
		holds "error: $N: Read-only file system"
	fi
	cmp "$P" "$W/known/policy.yaml"
}

@test "a published text that was damaged in the database is said, and published anew" {
	copy_known
	ask "$D" "UPDATE published SET yaml = yaml || ' '"
	rm "$P"
	run -0 once
	lacks "measuring"
	holds "warning: database: the text of generation"
	holds "published generation"
	grep -q "kernel: libc" "$P"
	[ "$(calibrations "$D")" -eq 1 ]
	run -0 once
	holds "is up to date"
	lacks "warning"
}

# --- /etc that can't be written --------------------------------------------------------------------------------------

# /etc and /run of its own, so that the installed paths can be used; then "$@" with $1 the database's folder.
installed() {
	apart '
		mkdir "$1/etc"
		mount -t tmpfs tmpfs "$1/etc"
		mkdir "$1/etc/upper" "$1/etc/work"
		mount -t overlay -o "lowerdir=/etc,upperdir=$1/etc/upper,workdir=$1/etc/work" overlay /etc
		mount -t tmpfs -o mode=755 tmpfs /run
		rm -rf /etc/pageclear
		calibrd() {
			echo "== $*"
			shift
			"$CALIBRD" --once --effort quick --database "$N/calibrd.db" "$@"
		}
		calibctl() { "$CTL" --database "$N/calibrd.db" "$@"; }
		N=$1
	'"$1" installed "$N"
}

@test "/etc read-only: published under /run and said so, taken back once /etc works again" {
	need_namespace
	copy_known
	run installed '
		mkdir /etc/pageclear
		mount -t tmpfs -o ro tmpfs /etc/pageclear
		calibrd read-only
		calibrd again
		[ "$(stat -c "%a %U" /run/pageclear/policy.yaml)" = "644 root" ]
		[ "$(stat -c %a /run/pageclear)" = 755 ]
		calibctl status
		umount /etc/pageclear
		calibrd writable
		[ ! -e /run/pageclear/policy.yaml ]
		[ -s /etc/pageclear/policy.yaml ]
		calibctl show
		calibrd afterwards
		echo == end
	'
	[ "$status" -eq 0 ]
	local read_only=${output#*== read-only} again=${output#*== again} writable=${output#*== writable}
	read_only=${read_only%%== *} again=${again%%== *} writable=${writable%%== *}
	[[ $read_only == *"warning: /etc/pageclear: Read-only file system: published as /run/pageclear/policy.yaml"* ]]
	[[ $again == *"/run/pageclear/policy.yaml is up to date"* ]]
	[[ $again == *"policy     /run/pageclear/policy.yaml"* ]]
	[[ $writable == *"in /etc/pageclear/policy.yaml"* ]]
	[[ $writable == *"policy     /etc/pageclear/policy.yaml"* ]]
	[[ ${output#*== afterwards} == *"/etc/pageclear/policy.yaml is up to date"* ]]
	lacks "measuring for about"
	lacks edited
}

@test "/etc read-only with a policy of another topology in it: the one under /run goes before it" {
	need_namespace
	copy_known
	sed 's/topology: ".*"/topology: "0123456789ab"/' "$P" >"$N/foreign.yaml"
	run -0 installed '
		mkdir /etc/pageclear
		mount -t tmpfs tmpfs /etc/pageclear
		cp "$N/foreign.yaml" /etc/pageclear/policy.yaml
		mount -o remount,ro /etc/pageclear
		calibrd read-only
		calibctl show
		cmp "$N/foreign.yaml" /etc/pageclear/policy.yaml
	'
	holds "/etc/pageclear: Read-only file system"
	holds "published as /run/pageclear/policy.yaml"
	holds "policy     /run/pageclear/policy.yaml"
}

@test "/etc/pageclear missing: under /run, too" {
	need_namespace
	copy_known
	run -0 installed '
		calibrd missing
		ls /run/pageclear
		[ ! -e /etc/pageclear ]
	'
	holds "warning: /etc/pageclear: No such file or directory: published as /run/pageclear/policy.yaml"
}

@test "the files under /usr/lib and /etc are read where no other is named" {
	need_namespace
	copy_known
	run -0 installed '
		mkdir /etc/pageclear
		echo "pins: [{intent: scrub, from: 4K, kernel: movnti}]" >/etc/pageclear/calibrd.yaml
		calibrd configured
		echo "pinned $(grep -c pinned /etc/pageclear/policy.yaml) of" \
			"$(grep -c "intent: scrub" /etc/pageclear/policy.yaml)"
		echo "effort: fast" >/etc/pageclear/calibrd.yaml
		calibrd mistaken || echo "exit status $?"
	'
	[[ $output =~ pinned\ ([1-9])\ of\ ([1-9]) ]]
	[ "${BASH_REMATCH[1]}" -eq "${BASH_REMATCH[2]}" ]
	holds "error: /etc/pageclear/calibrd.yaml:1:9: effort: expected one of quick, standard, thorough, found fast"
	holds "exit status 2"
}
