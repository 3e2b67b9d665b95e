#!/usr/bin/env bats
# libpageclear-preload.so before programs that know nothing of it: each of its functions at every border, moments at which
# nothing is ready yet, and real programs, whose output stays what it is.

# bats sets output and lines; variables in single quotes are for the shell that they are given to.
# shellcheck disable=SC2016,SC2030,SC2031,SC2154

bats_require_minimum_version 1.5.0

setup_file() {
	cd "$BATS_TEST_DIRNAME/../.." || return 1
	export B=${B:-build} CC=${CC:-gcc} T=$BATS_FILE_TMPDIR
	unset PAGECLEAR_POLICY PAGECLEAR_PRELOAD_FROM PAGECLEAR_PRELOAD_INTENT PAGECLEAR_PRELOAD_STATUS LD_PRELOAD
	PRELOAD=$(realpath "$B/libpageclear-preload.so")
	FAULTY=$(realpath "$B/libpageclear-preload-faulty.so")
	export PRELOAD FAULTY
	build
	write_policies
}

build() {
	local flags="-std=gnu11 -D_GNU_SOURCE -O2 -fno-builtin -Wall -Wextra -Werror -Ilibpolicy/include"
	ln -sf "$(realpath "$B/libpolicy.so")" "$T/libpolicy.so.0"
	# shellcheck disable=SC2086
	{
		$CC $flags -o "$T/calls" tests/preload/calls.c
		$CC $flags -o "$T/allocator" tests/preload/allocator.c
		$CC $flags -o "$T/forks" tests/preload/forks.c -pthread
		$CC $flags -DLIBPOLICY -o "$T/forks-archive" tests/preload/forks.c "$B/libpolicy.a" -lyaml -pthread
		$CC $flags -DLIBPOLICY -o "$T/forks-shared" tests/preload/forks.c "$B/libpolicy.so" "-Wl,-rpath,$T" -pthread
		# Without a PLT: its entries are not ready when the resolver runs.
		$CC $flags -shared -fPIC -fno-plt -o "$T/libearly.so" tests/preload/early.c
		$CC $flags -DPROGRAM -o "$T/early" tests/preload/early.c "$T/libearly.so" "-Wl,-rpath,$T"
	}
}

# name, clear's tables, more lines: made for this CPU, whose name the library tells of a policy that is not.
write_policy() {
	printf 'format: 1\nquality: good\nhost: {topology: "0123456789ab", arch: "%s", cpus: ["%s"]}\n%sclear:\n%s\n' \
		"$(uname -m)" "$CPU" "${3:+$3$'\n'}" "$2" >"$T/$1.yaml"
}

write_policies() {
	CPU="Nobody 1/1/1"
	write_policy foreign "- {intent: scrub, when: {threads: 1}, rules: [{from: 0, kernel: libc}]}"
	CPU=$(PAGECLEAR_POLICY=$T/foreign.yaml PAGECLEAR_PRELOAD_STATUS=1 LD_PRELOAD=$PRELOAD /bin/true 2>&1 |
		sed -n 's/.*foreign\.yaml: made for Nobody 1\/1\/1, this is \([^;]*\).*/\1/p')
	[ -n "$CPU" ]
	export CPU
	write_policy faulty "- {intent: hot, when: {threads: 1, prior: cached}, rules: [{from: 0, kernel: libc}, {from: 65536, kernel: t_wrong}]}
- {intent: cold, when: {threads: 1, prior: cached}, rules: [{from: 0, kernel: t_wrong}]}
- {intent: scrub, when: {threads: 1}, rules: [{from: 0, kernel: libc}, {from: 1048576, kernel: t_wrong}]}"
	local rules="rules: [{from: 0, kernel: libc}, {from: 257, kernel: movnti}, {from: 9000, kernel: avxnt, chunk: 8192}, {from: 65536, kernel: clzero}, {from: 1048576, kernel: stosq}]"
	# Its tables differ for cached and flushed, so that who does not say would probe.
	local probe="probe: {from: 4096, lines: 4, slow_ns: 50}"
	write_policy busy "- {intent: hot, when: {threads: 1, prior: flushed}, rules: [{from: 0, kernel: libc}, {from: 300, kernel: stosb}]}
- {intent: hot, when: {threads: 1, prior: cached}, $rules}
- {intent: cold, when: {threads: 1, prior: cached}, $rules}
- {intent: scrub, when: {threads: 1}, $rules}" "$probe"
}

# What every program here must live with: assignments for env.
modes=("PAGECLEAR_POLICY=builtin"
	"PAGECLEAR_POLICY="
	"PAGECLEAR_POLICY=$BATS_FILE_TMPDIR/nothing.yaml PAGECLEAR_PRELOAD_INTENT=scrub"
	"PAGECLEAR_POLICY=$BATS_FILE_TMPDIR/busy.yaml"
	"PAGECLEAR_POLICY=$BATS_FILE_TMPDIR/busy.yaml PAGECLEAR_PRELOAD_FROM=0 PAGECLEAR_PRELOAD_INTENT=cold"
	"PAGECLEAR_POLICY=$BATS_FILE_TMPDIR/busy.yaml PAGECLEAR_PRELOAD_FROM=4K PAGECLEAR_PRELOAD_INTENT=scrub")

# Says `done`, and nothing else, in every mode.
in_every_mode() {
	local mode
	for mode in "${modes[@]}"; do
		# shellcheck disable=SC2086
		run env $mode LD_PRELOAD="$PRELOAD" "$@"
		if [ "$status" -ne 0 ] || [ "$output" != "done" ]; then
			echo "$mode: exit status $status: $output"
			return 1
		fi
	done
}

# A program that succeeds: its output (both kinds) and exit status are those without the library.
same() {
	local mode with
	"$@" >"$BATS_TEST_TMPDIR/plain" 2>&1
	[ -s "$BATS_TEST_TMPDIR/plain" ]
	for mode in "${modes[@]}"; do
		with=0
		# shellcheck disable=SC2086
		env $mode LD_PRELOAD="$PRELOAD" "$@" >"$BATS_TEST_TMPDIR/with" 2>&1 || with=$?
		if [ "$with" -ne 0 ] || ! cmp "$BATS_TEST_TMPDIR/plain" "$BATS_TEST_TMPDIR/with"; then
			echo "$mode: exit status $with"
			diff "$BATS_TEST_TMPDIR/plain" "$BATS_TEST_TMPDIR/with" | head -n 20
			return 1
		fi
	done
}

# assignments, FROM, WIPE: which clears go by a policy that leaves its mark.
by_policy() {
	# shellcheck disable=SC2086
	run env PAGECLEAR_POLICY="$T/faulty.yaml" $1 LD_PRELOAD="$FAULTY" "$T/calls" policy "$2" "$3"
	if [ "$status" -ne 0 ] || [ "${lines[-1]}" != "done" ]; then
		echo "$1: $output"
		return 1
	fi
}

has() {
	command -v "$1" >/dev/null || skip "NOT TRIED: no $1 (package $2)"
}

# --- the library -----------------------------------------------------------------------------------------------------

@test "it exports five functions, without versions, and needs libc and libyaml" {
	exported=$(nm -D --defined-only "$PRELOAD" | awk '{ print $3 }' | sort | tr '\n' ' ')
	[ "$exported" = "__explicit_bzero_chk __memset_chk bzero explicit_bzero memset " ]
	needed=$(readelf -d "$PRELOAD" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -v '^ld-linux' | sort | tr '\n' ' ')
	[ "$needed" = "libc.so.6 libyaml-0.so.2 " ]
	run readelf -lW "$PRELOAD"
	[[ $output == *GNU_STACK*" RW "* ]]
	run readelf -d "$PRELOAD"
	[[ $output != *TEXTREL* ]]
}

@test "nothing inside calls the functions that it stands in for" {
	run nm -D --undefined-only "$PRELOAD"
	[ "$status" -eq 0 ]
	[[ $output == *__chk_fail* ]]
	[[ ! $output =~ (memset|bzero) ]]
	run objdump -d --no-show-raw-insn "$PRELOAD"
	[[ $output == *'<memset>:'* ]]
	[[ $output == *'<__wrap_memset'* ]]
	[[ ! $output =~ (call|jmp|bl|b)[a-z]*[[:space:]]+[0-9a-f]+\ \<(memset|bzero|explicit_bzero|__memset_chk)\> ]]
}

@test "all offsets, sizes around every border, values: exactly the right bytes" {
	run "$T/calls" right
	[ "$output" = "done" ]
	in_every_mode "$T/calls" right
}

@test "clears go by the policy from where it knows anything better, each by its intent" {
	by_policy "" 65536 4096
	by_policy "PAGECLEAR_PRELOAD_INTENT=hot" 65536 4096
	by_policy "PAGECLEAR_PRELOAD_INTENT=cold" 4096 4096
	by_policy "PAGECLEAR_PRELOAD_INTENT=scrub" 1048576 4096
}

@test "clears go by the policy from a stated size" {
	by_policy "PAGECLEAR_PRELOAD_INTENT=cold PAGECLEAR_PRELOAD_FROM=300" 300 300
	by_policy "PAGECLEAR_PRELOAD_FROM=96KiB" 98304 98304
	by_policy "PAGECLEAR_PRELOAD_FROM=1.5M" 1572864 1572864
	by_policy "PAGECLEAR_PRELOAD_FROM=15E" never never
}

@test "where the policy knows nothing better all is left to libc" {
	run env PAGECLEAR_POLICY="$T/foreign.yaml" PAGECLEAR_PRELOAD_STATUS=1 LD_PRELOAD="$PRELOAD" /bin/true
	[[ $output == *"libpageclear-preload: memset and bzero "* ]]
	[[ $output == *"foreign.yaml: made for Nobody 1/1/1, this is $CPU"* ]]
	write_policy libc "- {intent: hot, when: {threads: 1, prior: cached}, rules: [{from: 0, kernel: libc}]}"
	run env PAGECLEAR_POLICY="$T/libc.yaml" PAGECLEAR_PRELOAD_STATUS=1 LD_PRELOAD="$FAULTY" "$T/calls" policy never never
	[ "$status" -eq 0 ]
	[ "${lines[0]}" = "libpageclear-preload: memset and bzero left to libc; explicit_bzero left to libc; $T/libc.yaml: generation 0, quality good, for $CPU" ]
	[ "${lines[1]}" = "done" ]
}

@test "the status tells sizes and policy, and is silent unless asked for" {
	run env PAGECLEAR_POLICY="$T/faulty.yaml" PAGECLEAR_PRELOAD_STATUS=1 LD_PRELOAD="$FAULTY" /bin/true
	[ "$output" = "libpageclear-preload: memset and bzero from 64 KiB; explicit_bzero from 4 KiB; $T/faulty.yaml: generation 0, quality good, for $CPU" ]
	for value in "" 0; do
		run env PAGECLEAR_PRELOAD_STATUS="$value" LD_PRELOAD="$PRELOAD" /bin/true
		[ "$status" -eq 0 ]
		[ -z "$output" ]
	done
}

# variable, value, message: said once, on standard error, and the default used.
refused() {
	run --separate-stderr env PAGECLEAR_POLICY="$T/faulty.yaml" "$1=$2" LD_PRELOAD="$FAULTY" "$T/calls" policy 65536 4096
	[ "$status" -eq 0 ]
	[ "$output" = "done" ]
	[ "$stderr" = "libpageclear-preload: $1: expected $3" ] || {
		echo "$stderr"
		return 1
	}
}

@test "wrong settings are said once, and the defaults used" {
	local size="a size as 4096, 64K or 2MiB, found" policy="the policy says from where" value
	for value in twelve -1 0x10 " 4096" 12KK 4096x 1e3 99999999999E; do
		refused PAGECLEAR_PRELOAD_FROM "$value" "$size \"$value\"; $policy"
	done
	refused PAGECLEAR_PRELOAD_FROM $'4\e[31m\n' "$size \"4?[31m?\"; $policy"
	value=$(printf '%060d' 0 | tr 0 x)
	refused PAGECLEAR_PRELOAD_FROM "$value" "$size \"${value:0:47}...\"; $policy"
	for value in warm HOT "hot " hotter; do
		refused PAGECLEAR_PRELOAD_INTENT "$value" "hot, cold or scrub, found \"$value\"; hot is used"
	done
	run env PAGECLEAR_PRELOAD_STATUS=yes PAGECLEAR_POLICY=builtin LD_PRELOAD="$PRELOAD" /bin/true
	[ "${#lines[@]}" -eq 2 ]
	[ "${lines[0]}" = 'libpageclear-preload: PAGECLEAR_PRELOAD_STATUS: expected 0 or 1, found "yes"; 1 is used' ]
	[[ ${lines[1]} == *"built-in policy"* ]]
}

@test "empty settings are none" {
	by_policy "PAGECLEAR_PRELOAD_INTENT= PAGECLEAR_PRELOAD_FROM= PAGECLEAR_PRELOAD_STATUS=" 65536 4096
}

@test "overflows end the program as libc's own do" {
	ulimit -c 0
	for call in memset explicit_bzero; do
		run "$T/calls" overflow $call
		[ "$status" -eq 134 ]
		plain=${lines[0]}
		[[ $plain == *"buffer overflow detected"* ]]
		run env PAGECLEAR_POLICY="$T/busy.yaml" LD_PRELOAD="$PRELOAD" "$T/calls" overflow $call
		[ "$status" -eq 134 ]
		[ "${lines[0]}" = "$plain" ]
	done
}

# --- moments ---------------------------------------------------------------------------------------------------------

@test "it is called before it is relocated, and by constructors before and behind its own" {
	in_every_mode "$T/early"
	local before=0 behind=0
	for order in "$PRELOAD" "$PRELOAD $T/libearly.so" "$T/libearly.so $PRELOAD"; do
		run env EARLY_SAYS=1 PAGECLEAR_POLICY="$T/busy.yaml" PAGECLEAR_PRELOAD_STATUS=1 LD_PRELOAD="$order" "$T/early"
		[ "$status" -eq 0 ]
		[ "${lines[2]}" = "done" ]
		case ${lines[0]} in
		early:*) before=$((before + 1)) ;;
		libpageclear-preload:*) behind=$((behind + 1)) ;;
		*) false ;;
		esac
	done
	[ "$before" -gt 0 ]
	[ "$behind" -gt 0 ]
	# The loader says in which order it relocates.
	run env LD_DEBUG=reloc LD_PRELOAD="$PRELOAD" "$T/early"
	order=$(grep -o 'relocation processing: .*/lib\(early\|pageclear-preload\).so' <<<"$output" | sed 's/.*\///' | tr '\n' ' ')
	[ "$order" = "libearly.so libpageclear-preload.so " ]
}

@test "an overflow in a constructor before its own ends the program too" {
	ulimit -c 0
	run env EARLY_SAYS=1 EARLY_OVERFLOWS=1 PAGECLEAR_PRELOAD_STATUS=1 LD_PRELOAD="$PRELOAD" "$T/early"
	[ "$status" -eq 134 ]
	[ "${lines[0]}" = "early: constructor" ]
	[[ ${lines[1]} == *"buffer overflow detected"* ]]
}

@test "threads, forks and signal handlers" {
	in_every_mode "$T/forks"
}

@test "a program that links libpolicy itself, shared or as an archive" {
	in_every_mode "$T/forks-shared"
	in_every_mode "$T/forks-archive"
	# Its own clears are its own, whose kernel is what went before: 70000 bytes of cold would have left a mark.
	for program in forks-shared forks-archive; do
		run env PAGECLEAR_POLICY="$T/faulty.yaml" PAGECLEAR_PRELOAD_FROM=1M LD_PRELOAD="$FAULTY" "$T/$program"
		[ "$output" = "done" ]
	done
}

@test "a program whose own allocator clears by memset" {
	run "$T/allocator"
	[ "$output" = "done" ]
	in_every_mode "$T/allocator"
}

@test "/etc/ld.so.preload loads it everywhere; set-uid programs heed no settings" {
	[ "$(id -u)" -eq 0 ] || skip "NOT TRIED: takes root"
	unshare -m true 2>/dev/null || skip "NOT TRIED: takes a mount namespace"
	local folder
	folder=$(mktemp -d /tmp/preload-XXXXXX)
	chmod 755 "$folder"
	cp -a /etc "$folder/etc"
	cp "$PRELOAD" "$folder/library.so"
	echo "$folder/library.so" >"$folder/etc/ld.so.preload"
	install -m 4755 "$(command -v id)" "$folder/id"
	run --separate-stderr unshare -m sh -c 'mount --bind "$1/etc" /etc
		PAGECLEAR_PRELOAD_STATUS=1 /bin/true
		PAGECLEAR_PRELOAD_STATUS=0 setpriv --reuid 65534 --clear-groups env PAGECLEAR_PRELOAD_INTENT=warm "$1/id" -u' sh "$folder"
	rm -rf "$folder"
	[ "$status" -eq 0 ]
	[ "$output" = 0 ] || skip "NOT TRIED: no set-uid programs in /tmp"
	[ "${#stderr_lines[@]}" -eq 1 ]
	[[ ${stderr_lines[0]} == "libpageclear-preload: memset and bzero "* ]]
}

# --- real programs ---------------------------------------------------------------------------------------------------

@test "python3" {
	local python=/usr/bin/python3
	[ -x $python ] || python=python3
	has $python python3
	cat >"$BATS_TEST_TMPDIR/use.py" <<-'END'
		import hashlib, json, os, subprocess, sys, threading, zlib
		total = hashlib.sha256()
		for size in (0, 100, 4096, 70000, 1 << 20, (5 << 20) + 7):
		    block = bytearray(size)
		    assert not any(block[:: max(1, size // 999)]) and block.count(0) == size
		    block[size // 2 : size // 2 + 1] = b"x"
		    total.update(block)
		    total.update(zlib.compress(bytes(block)))
		threads = [threading.Thread(target=lambda: [bytearray(300000) for _ in range(50)]) for _ in range(4)]
		[t.start() for t in threads], [t.join() for t in threads]
		child = os.fork()
		if child == 0:
		    os._exit(bytearray(1 << 21).count(0) != 1 << 21)
		assert os.waitpid(child, 0)[1] == 0
		print(subprocess.run([sys.executable, "-c", "print(sum(bytearray(1 << 20)))"], capture_output=True, text=True))
		print(json.dumps(total.hexdigest()))
	END
	sed -i 's/^\t\t//' "$BATS_TEST_TMPDIR/use.py"
	same $python "$BATS_TEST_TMPDIR/use.py"
}

@test "sqlite3" {
	has sqlite3 sqlite3
	cat >"$BATS_TEST_TMPDIR/use.sql" <<-'END'
		PRAGMA journal_mode = MEMORY;
		CREATE TABLE t (id INTEGER PRIMARY KEY, word TEXT, body BLOB);
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
		INSERT INTO t SELECT i, printf('word %d', i * 7919 % 20011), zeroblob(i % 500) FROM n;
		CREATE INDEX by_word ON t (word);
		INSERT INTO t VALUES (NULL, 'large', zeroblob(3000000));
		UPDATE t SET body = body || x'01' WHERE id % 1000 = 0;
		SELECT count(*), sum(length(body)), min(word), max(word), sum(instr(body, x'01')) FROM t;
		SELECT length(replace(hex(body), '0', '')), length(body) FROM t WHERE word = 'large';
		SELECT group_concat(word) FROM (SELECT word FROM t ORDER BY word DESC LIMIT 10);
		PRAGMA integrity_check;
	END
	same sh -c 'rm -f "$1.db"; sqlite3 "$1.db" <"$1"; cksum <"$1.db"' sh "$BATS_TEST_TMPDIR/use.sql"
}

@test "gcc" {
	has gcc gcc
	same sh -c 'gcc -O2 -g -I. -Ilibpolicy/include -D_GNU_SOURCE -c -o "$1" libpolicy/tree.c && cksum <"$1"' sh "$BATS_TEST_TMPDIR/tree.o"
}

# Debian's one program, which is the server where it is called so; the package redis-server would start one.
redis() {
	(exec -a redis-server redis-check-rdb --port 0 --unixsocket "$1" --dir "$BATS_TEST_TMPDIR" --daemonize no --save "" \
		--logfile "$1.log") 3>&- &
	local server=$! tries code=0
	for ((tries = 0; tries < 200; tries++)); do
		env -u LD_PRELOAD redis-cli -s "$1" ping >/dev/null 2>&1 && break
		sleep 0.05
	done
	env -u LD_PRELOAD redis-cli -s "$1" <<-'END'
		SET a b
		GET a
		SETBIT bits 40000000 1
		BITCOUNT bits
		BITPOS bits 1
		SETRANGE range 3000000 end
		STRLEN range
		GETRANGE range 2999998 -1
		LPUSH list 1 2 3
		LRANGE list 0 -1
		DEBUG DIGEST
		BGSAVE
		SHUTDOWN NOSAVE FORCE
	END
	wait $server || code=$?
	echo "ended with $code"
	[ "$code" -eq 0 ] || cat "$1.log"
}

@test "redis-server" {
	has redis-check-rdb redis-tools
	export -f redis
	# A socket's name has at most 107 bytes.
	local folder
	folder=$(mktemp -d /tmp/redis-XXXXXX)
	export BATS_TEST_TMPDIR
	local code=0
	same bash -c 'redis "$1"' bash "$folder/s" || code=$?
	rm -rf "$folder"
	[ "$code" -eq 0 ]
	grep -q '^ended with 0$' "$BATS_TEST_TMPDIR/with"
	grep -q '^40000000$' "$BATS_TEST_TMPDIR/with"
}

@test "node" {
	has node nodejs
	cat >"$BATS_TEST_TMPDIR/use.js" <<-'END'
		const crypto = require("crypto"), zlib = require("zlib");
		const { Worker } = require("worker_threads");
		const block = Buffer.allocUnsafe(8 << 20).fill(7);
		block.fill(0, 5, (8 << 20) - 3);
		console.log(crypto.createHash("sha256").update(block).digest("hex"));
		console.log(zlib.gzipSync(Buffer.alloc(3 << 20)).length, block.indexOf(7, 5));
		new Worker("require('worker_threads').parentPort.postMessage(Buffer.alloc(1 << 20).every((b) => b === 0))", { eval: true })
			.on("message", (right) => console.log(right));
	END
	same node "$BATS_TEST_TMPDIR/use.js"
}

@test "stress-ng" {
	has stress-ng stress-ng
	# Its words hold times and process ids: what it found wrong is in its exit status.
	same sh -c 'stress-ng --quiet --verify --vm 1 --vm-bytes 16M --vm-ops 3000 --vm-method zero-one --timeout 20
		echo "ended with $?"'
	grep -q '^ended with 0$' "$BATS_TEST_TMPDIR/with"
}
