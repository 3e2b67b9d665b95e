#!/usr/bin/env bats
# calibctl's verify and rollback where the host's own calibrd runs: that one measures and publishes, over the bus. In a
# mount namespace whose /etc/pageclear and /var/lib/pageclear are made here; calibrd is a stand-in that measures nothing.

# bats sets output and stderr; client_common sets the rest; the commands of `on_host` have arguments of their own.
# shellcheck disable=SC2016,SC2030,SC2031,SC2153,SC2154

load client_common

setup_file() {
	make_client_folder
	export SOURCE_DATE_EPOCH=1796035327 TOPOLOGY DATA=tests/data/calibctl
	TOPOLOGY=$("$CTL" topology --json --policy "$DATA/foreign.yaml" | jq -r .topology)
	mkdir "$W/host"
	sed -e "s|@CPU@|$(signature)|" -e "s|@TOPOLOGY@|$TOPOLOGY|" "$DATA/native.yaml.in" >"$W/host/policy.yaml"
	"$B/tool-calibctl_database" "$W/host/calibrd.db" "$TOPOLOGY" good
	sed 's/^generation: .*/generation: 3/' "$W/host/policy.yaml" >"$W/before.yaml"
	sed -i 's/kernel: sse2nt/kernel: libc/' "$W/before.yaml"
	publish "$W/host/calibrd.db" 3 "$W/before.yaml"
	publish "$W/host/calibrd.db" 7 "$W/host/policy.yaml"
	verified 101 1 0.01
	verified 102 0 0.25
}

setup() {
	need_x86
	need_root
	need_namespace
	make_client
}

teardown() {
	end_client
}

teardown_file() {
	rm -rf "$W"
}

# A verification of generation 7 as calibrd records it: verified NUMBER PASSED REGRET. Of scrub first, as no table has it.
verified() {
	ask "$W/host/calibrd.db" "
		INSERT INTO verification (id, generation, topology, effort, at, passed)
		VALUES ($1, 7, '$TOPOLOGY', 'quick', 1796035000, $2);
		INSERT INTO verified (verification, intent, prior, sizes, mean, p95, worst, worst_bytes, floor, floor_p95, gain,
			best_gain, passed)
		VALUES ($1, 'scrub', 'unknown', 9, 0.01, 0.1, 0.2, 65536, 0.01, 0.02, 2, 2, 1),
			($1, 'cold', 'flushed', 9, $3, 0.1, 0.3, 65536, 0.01, 0.02, 2, 2.5, $2),
			($1, 'hot', 'cached', 9, 0.01, 0.1, 0.2, 65536, 0.01, 0.02, 1, 1, 1)"
}

# A host's files, and a command among them: on_host COMMAND ARGUMENT... The database is writable and nobody's.
HOST='
	mount -t tmpfs tmpfs /mnt
	mkdir /mnt/upper /mnt/work
	mount -t overlay -o lowerdir=/etc,upperdir=/mnt/upper,workdir=/mnt/work overlay /etc
	mount -t tmpfs -o mode=755 tmpfs /var/lib
	mount -t tmpfs -o mode=755 tmpfs /run
	rm -rf /etc/pageclear
	mkdir /etc/pageclear /var/lib/pageclear
	cp "$W/host/policy.yaml" /etc/pageclear/
	cp "$W/host/calibrd.db" /var/lib/pageclear/
'

on_host() {
	apart "$HOST$1" host "${@:2}"
}

# The same in the background, its words in LOG.
launch_on_host() {
	launch "$LOG" unshare -m --propagation private bash -euc "${HOST}exec \"\$@\"" host "$@"
}

# As calibrd holds it.
HELD='
	exec 9>>/var/lib/pageclear/calibrd.db.lock
	flock -n 9
'

# --- verify ----------------------------------------------------------------------------------------------------------

# What a verification by calibrd comes to: by_calibrd STATUS "OUTCOME TEXT" OPTION...; what was said is in output.
by_calibrd() {
	local job=$(($(grep -c '^verify ' "$STAND") + 1))
	launch_on_host "$CTL" verify "${@:3}"
	until_said "$STAND" "^verify $job "
	tell "progress 0.5" "finish $2"
	ends_with "$1"
}

# Its result alone.
json_of() {
	grep -v '^calibctl:' <<<"$output"
}

@test "verify: calibrd measures, and its figures are told as if measured here" {
	stand
	tell "path /etc/pageclear/policy.yaml" "generation 7"
	by_calibrd 0 "passed within tolerance everywhere"
	grep -x "verify 1 standard" "$STAND"
	holds "calibctl: calibrd is verifying"
	says "policy /etc/pageclear/policy.yaml (this host)"
	says "effort standard, by calibrd"
	says "hot, cached 9 1.0 % 10.0 % 20.0 % 64 KiB 1.0 % 2.0 % 1.00x 1.00x -"
	says "verdict the policy's choices cost no more than tolerated"

	by_calibrd 1 "beyond the policy's choices cost more" --effort quick
	grep -x "verify 2 quick" "$STAND"
	says "! cold, flushed: mean regret 25.0 %, allowed 3.0 %; worst at 64 KiB (65536 bytes), where the choice, sse2nt, costs 30.0 % more than the best"
	says "verdict the policy's choices cost more than tolerated"
}

@test "verify --json: what the database does not keep is null" {
	stand
	tell "path /etc/pageclear/policy.yaml" "generation 7"
	by_calibrd 0 "passed" --json --effort quick
	json_of | jq -e '.recorded == 101 and .seed == null and .passed and .effort == "quick" and .policy.generation == 7'
	json_of | jq -e '[.series[] | [.intent, .prior]] == [["hot","cached"],["cold","flushed"],["scrub",null]]'
	json_of | jq -e 'all(.series[]; .sizes == 9 and .sizes_measured == null and .worst.better == null and
		.worst.chosen.kernel != null and .unhinted_gain == null)'
	json_of | jq -e '.series[1].worst.chosen.kernel == "sse2nt"'
}

@test "verify: one that failed or was cancelled, or whose figures are not to be found" {
	stand
	tell "path /etc/pageclear/policy.yaml" "generation 7"
	by_calibrd 3 "failed the child was killed"
	says "verified failed: the child was killed"
	by_calibrd 1 "cancelled asked for"
	says "verified cancelled: asked for"
	by_calibrd 0 "passed within tolerance everywhere"
	says "its figures cannot be read: /var/lib/pageclear/calibrd.db: no verification 103 of calibrd's: has it another database?"
	says "verified passed: within tolerance everywhere"
	by_calibrd 1 "beyond cold, flushed" --json
	json_of | jq -e '.ended | .outcome == "beyond" and .verification == 104 and .task == "verification"'
}

@test "verify: refused, or in the way of something else: said, exit status 1, nothing is measured here" {
	stand
	tell "path /etc/pageclear/policy.yaml"
	"$CTL" calibrate
	run -1 on_host '"$CTL" verify'
	[ "$output" = "calibctl: calibration 1 runs" ]
	tell "finish good" "refuse EPERM calibrd.yaml forbids measuring (calibrate: import)"
	run -1 on_host '"$CTL" verify'
	[ "$output" = "calibctl: calibrd.yaml forbids measuring (calibrate: import)" ]
}

# That it begins to is enough.
measures_here() {
	launch_on_host "$@" "$CTL" verify --effort quick
	until_said "$LOG" "^calibctl: measuring: "
	kill "$PID"
}

@test "verify is measured here for others, with particular options, for other policies, without calibrd" {
	here() {
		run on_host "$1"
		holds "$2"
		lacks "calibrd is verifying"
	}
	# A foreign library that cannot be loaded, a policy that cannot be read: each ends before anything is measured.
	stand
	tell "path /etc/pageclear/policy.yaml"
	here '"$CTL" verify --against /nowhere.so' "/nowhere.so"
	here '"$CTL" verify --policy /nowhere.yaml' "/nowhere.yaml"
	measures_here setpriv --reuid nobody --regid nogroup --clear-groups
	tell "path /elsewhere.yaml"
	measures_here
	without '^verify' "$STAND"
	kill "$DAEMON"
	until_true is_gone "$DAEMON"
	measures_here
}

# --- rollback --------------------------------------------------------------------------------------------------------

@test "rollback: by calibrd where it holds the database" {
	stand
	tell "path /etc/pageclear/policy.yaml" "generation 7"
	run -0 on_host "$HELD"'"$CTL" rollback 3'
	says "published generation 8 in /etc/pageclear/policy.yaml: the policy of generation 3 again"
	says "(calibctl calibrate does so now)"
	grep -x "rollback 3" "$STAND"
	run -0 on_host "$HELD"'"$CTL" rollback 3 --json'
	jq -e '.published and .generation == 9 and .from == 3 and .path == "/etc/pageclear/policy.yaml"' <<<"$output"
	# What there is not is not asked for.
	run -2 on_host "$HELD"'"$CTL" rollback 5'
	holds "there is no generation 5"
	run -0 on_host "$HELD"'"$CTL" rollback 7'
	says "generation 7 is in force already"
	[ "$(grep -c '^rollback' "$STAND")" -eq 2 ]
}

@test "rollback: in force already, by calibrd's word" {
	stand
	tell "path /etc/pageclear/policy.yaml" "generation 6"
	run -0 on_host "$HELD"'"$CTL" rollback 3'
	says "nothing generation 7, in force, is the same policy as generation 3"
}

@test "rollback: refused by calibrd; and calibrd out of reach" {
	stand
	tell "refuse EBUSY a calibration is running (job 1): wait for it, or cancel it"
	run -1 on_host "$HELD"'"$CTL" rollback 3'
	[ "$output" = "calibctl: a calibration is running (job 1): wait for it, or cancel it" ]
	kill "$DAEMON"
	until_true is_gone "$DAEMON"
	run -3 on_host "$HELD"'"$CTL" rollback 3'
	says "is writing it, and calibrd is not running. End it (systemctl stop calibrd), then roll back"
	kill "$BUS"
	until_true is_gone "$BUS"
	run -3 on_host "$HELD"'"$CTL" rollback 3'
	says "and the system bus cannot be reached"
	run -0 on_host '"$CTL" rollback 3; cat /etc/pageclear/policy.yaml'
	says "published generation 8 in /etc/pageclear/policy.yaml"
	says "(calibrd --force does so now)"
	holds "generation: 8"
}

@test "rollback: what was named is not the host's own, whoever holds it" {
	stand
	run -3 on_host "$HELD"'"$CTL" --policy /etc/pageclear/policy.yaml rollback 3'
	says "is writing it. End it, then roll back"
	without '^rollback' "$STAND"
}
