#!/usr/bin/env bats
# The YAML files against their JSON Schemas, by a parser and a validator that share no code with us.
# B is the build folder, as in the Makefile.

setup() {
	cd "$BATS_TEST_DIRNAME/../.." || return
	B=${B:-build}
	if ! /usr/bin/python3 -c 'import jsonschema, yaml' 2>/dev/null; then
		skip "python3-jsonschema or python3-yaml is missing"
	fi
}

policy() {
	/usr/bin/python3 tests/cli/validate.py schema/policy.schema.json "$@"
}

config() {
	/usr/bin/python3 tests/cli/validate.py schema/calibrd.schema.json "$@"
}

# The shipped file with every setting in force: settings follow their "#" at once, prose a space.
uncomment() {
	sed -E 's/^#([a-z])/\1/' configs/calibrd.yaml
}

# Both refuse it: calibrd's reader and the schema.
refused() {
	printf '%s\n' "$1" >"$BATS_TEST_TMPDIR/bad.yaml"
	run -2 "$B/test-config" --check "$BATS_TEST_TMPDIR/bad.yaml"
	[[ $output == "$BATS_TEST_TMPDIR/bad.yaml:"[1-9]* ]]
	run -3 config "$BATS_TEST_TMPDIR/bad.yaml"
}

# calibrd's reader alone refuses it: the schema says in which points it is the laxer one.
refused_by_calibrd() {
	printf '%s\n' "$1" >"$BATS_TEST_TMPDIR/bad.yaml"
	run -2 "$B/test-config" --check "$BATS_TEST_TMPDIR/bad.yaml"
	config "$BATS_TEST_TMPDIR/bad.yaml"
}

accepted() {
	printf '%s\n' "$1" >"$BATS_TEST_TMPDIR/good.yaml"
	"$B/test-config" --check "$BATS_TEST_TMPDIR/good.yaml"
	config "$BATS_TEST_TMPDIR/good.yaml"
}

bats_require_minimum_version 1.5.0

@test "exported policies fit the schema" {
	"$B/test-export" --dump "$BATS_TEST_TMPDIR"
	policy "$BATS_TEST_TMPDIR"/*.yaml
}

@test "another parser reads the same values out of an exported policy" {
	"$B/test-export" --dump "$BATS_TEST_TMPDIR"
	/usr/bin/python3 - "$BATS_TEST_TMPDIR" <<-'END'
		import sys, yaml
		first, second, third = (yaml.load(open(f"{sys.argv[1]}/{i}.yaml"), yaml.SafeLoader) for i in range(3))
		assert first["format"] == 1 and first["generation"] == 7 and first["written"] == "2026-11-30T10:42:07Z"
		assert first["host"]["cpus"] == ["AuthenticAMD 25/1/1"] and first["host"]["knee_bytes"] == 8388608
		assert first["probe"] == {"from": 262144, "lines": 4, "slow_ns": 57}
		assert first["clear"] == [{"intent": "cold", "when": {"threads": 1, "prior": "flushed"}, "rules": [
		    {"from": 0, "kernel": "libc"},
		    {"from": 2048, "low": 1536, "high": 3072, "kernel": "clzero", "chunk": 0, "gain": 2.91}]}]
		assert second["generation"] == 2**64 - 1 and second["version"] == "1.10"
		assert second["host"]["topology"] == "123456789012" and second["host"]["cpus"][1] == "true"
		assert second["host"]["name"] == '"C:\\" # {a: [b, \'Grüße\']} - &x *y !z 中 %'
		assert second["probe"]["slow_ns"] == 1234.5 and "knee_bytes" not in second["host"]
		assert second["clear"][6]["when"] == {"threads": 1}
		assert second["clear"][6]["rules"][1] == {
		    "from": 4096, "kernel": "movnti", "chunk": 2097152, "gain": 1.5, "pinned": True}
		assert "probe" not in third and third["clear"] == []
	END
}

@test "policies that readers take fit the schema" {
	for file in tests/data/policy/good/*.yaml; do
		case ${file##*/} in
		styles.yaml) ;; # 1e0 is a number to us and to YAML 1.2, but text to YAML 1.1
		*) policy "$file" ;;
		esac
	done
}

@test "policies that readers refuse don't fit the schema" {
	for file in tests/data/policy/bad/*.yaml; do
		case ${file##*/} in
		# Syntax that a schema never sees: the parser has resolved it.
		alias.yaml | anchor.yaml | tag.yaml | tag-directive.yaml | key-twice.yaml) ;;
		# Spellings of numbers and truth that YAML 1.1 has and we don't.
		generation-hex.yaml | generation-octal.yaml | rule-pinned.yaml) ;;
		# Limits of our parser, inside keys that readers ignore.
		deep.yaml | members-many.yaml) ;;
		# Order and uniqueness across items can't be told in JSON Schema.
		rule-descending.yaml | rule-equal.yaml | table-twice.yaml | scrub-twice.yaml) ;;
		*)
			echo "$file"
			run -3 policy "$file"
			;;
		esac
	done
}

@test "configs/calibrd.yaml is good, as shipped and with every setting in force" {
	"$B/test-config" --check configs/calibrd.yaml
	config configs/calibrd.yaml
	uncomment >"$BATS_TEST_TMPDIR/all.yaml"
	"$B/test-config" --check "$BATS_TEST_TMPDIR/all.yaml"
	config "$BATS_TEST_TMPDIR/all.yaml"
}

@test "the schema has the keys and defaults of configs/calibrd.yaml, and no others" {
	uncomment >"$BATS_TEST_TMPDIR/all.yaml"
	"$B/test-config" --keys >"$BATS_TEST_TMPDIR/keys"
	/usr/bin/python3 - "$BATS_TEST_TMPDIR" <<-'END'
		import json, sys, yaml
		def flat(properties, value, prefix=""):
		    for key, schema in properties.items():
		        if "properties" in schema:
		            yield from flat(schema["properties"], value[key], f"{prefix}{key}.")
		        else:
		            assert schema["default"] == value[key], key
		            yield prefix + key
		shipped = yaml.load(open(f"{sys.argv[1]}/all.yaml"), yaml.SafeLoader)
		schema = json.load(open("schema/calibrd.schema.json"))
		keys = list(flat(schema["properties"], shipped))
		assert keys == open(f"{sys.argv[1]}/keys").read().split(), keys
	END
}

@test "the schema has the limits that calibrd.yaml(5) and configs/calibrd.yaml tell" {
	/usr/bin/python3 - <<-'END'
		import json, re
		schema = json.load(open("schema/calibrd.schema.json"))["properties"]
		manual = re.sub(r"\s+", " ", open("man/calibrd.yaml.5").read())
		shipped = re.sub(r"\s+#? *", " ", open("configs/calibrd.yaml").read())
		def told(section, key, manual_words, shipped_words):
		    limits = schema[section]["properties"][key] if key else schema[section]
		    for text, words in (manual, manual_words), (shipped, shipped_words):
		        words = words.format(**limits)
		        assert words in text, words
		told("scrub_weight", None, "{minimum} to {maximum}, {default} unless set", "{minimum} (only the caches count) to {maximum} (")
		told("duty", "most_percent", "{minimum} to {maximum}, {default} unless set", "Per cent, {minimum} to {maximum}. It lasts")
		told("quiet", "most_percent", "{minimum} to {maximum}, {default} unless set; at", "Per cent, {minimum} to {maximum}; 100:")
		told("quiet", "wait_seconds", "{minimum} to {maximum}, {default} unless set, and",
		     "Seconds, {minimum} (do not wait) to {maximum}.")
		told("verify", "interval_days", "{minimum} (never) to {maximum}, {default} unless set", "{minimum} (never) to {maximum}.")
	END
}

@test "calibrd has the limits of memory, pins and paths that schema and calibrd.yaml(5) tell" {
	local least pins bytes
	read -r least pins bytes < <(/usr/bin/python3 - <<-'END'
		import json, re
		schema = json.load(open("schema/calibrd.schema.json"))
		manual = re.sub(r"\s+", " ", open("man/calibrd.yaml.5").read())
		least = schema["properties"]["memory"]["properties"]["most_bytes"]["then"]["anyOf"][1]["minimum"]
		pins = schema["properties"]["pins"]["maxItems"]
		path = schema["$defs"]["path"]["maxLength"]
		for words in f"; else at least {least >> 20} MiB", f"at most {pins} of them", f"of at most {path} bytes":
		    assert words in manual, words
		print(least, pins, path)
	END
	)
	accepted "memory: {most_bytes: $least}"
	refused "memory: {most_bytes: $((least - 1))}"
	local pin='{intent: hot, from: 0, kernel: libc}'
	accepted "pins: [$(yes "$pin" | head -n "$pins" | paste -sd,)]"
	refused "pins: [$(yes "$pin" | head -n $((pins + 1)) | paste -sd,)]"
	accepted "policy: /$(printf "%0$((bytes - 1))d" 0)"
	refused "policy: /$(printf "%0${bytes}d" 0)"
	grep -q 'libc cannot be excluded' man/calibrd.yaml.5
	refused 'exclude: [libc]'
}

@test "the schema knows every kernel of this build" {
	"$B/test-config" --kernels >"$BATS_TEST_TMPDIR/kernels"
	grep -qx libc "$BATS_TEST_TMPDIR/kernels"
	while read -r kernel; do
		printf 'pins: [{intent: hot, from: 0, kernel: %s}]\n' "$kernel" >"$BATS_TEST_TMPDIR/pin.yaml"
		config "$BATS_TEST_TMPDIR/pin.yaml"
	done <"$BATS_TEST_TMPDIR/kernels"
}

@test "the example in configs/calibrd.yaml fits" {
	sed -n 's/^#    //p' configs/calibrd.yaml >"$BATS_TEST_TMPDIR/example.yaml"
	grep -q '^pins:' "$BATS_TEST_TMPDIR/example.yaml"
	config "$BATS_TEST_TMPDIR/example.yaml"
	if [[ $(uname -m) == x86_64 ]]; then # its kernels are that architecture's
		"$B/test-config" --check "$BATS_TEST_TMPDIR/example.yaml"
	fi
}

@test "reader and schema take the same" {
	accepted ''
	accepted 'effort: quick'
	accepted 'scrub_weight: 10'
	accepted 'memory: {most_bytes: 0}'
	accepted 'memory: {most_bytes: 16777216}'
	accepted 'memory: {most_bytes: 1.5 GiB}'
	accepted 'memory: {most_bytes: "16777216"}'
	accepted 'memory: {most_bytes: 16777216 B}'
	accepted 'memory: {most_bytes: 16384k}'
	accepted 'memory: {most_bytes: 16M}'
	accepted 'memory: {most_bytes: 0.5G}'
	accepted 'memory: {most_bytes: "0"}'
	accepted 'memory: {most_bytes: 0.0 KiB}'
	accepted 'memory: {}'
	accepted 'duty: {most_percent: 1}'
	accepted 'quiet: {wait_seconds: 0, most_percent: 0.5}'
	accepted 'quiet: {most_percent: 100}'
	accepted 'verify: {interval_days: 0}'
	accepted 'policy: "/a b/c"'
	accepted 'exclude: []'
	accepted 'pins: [{intent: hot, from: 0, kernel: libc}]'
	accepted 'pins: [{intent: hot, prior: unknown, from: 4 KiB, to: 1m, kernel: libc}]'
	accepted 'pins: [{intent: scrub, from: 4096B, to: "1E", kernel: libc}]'
}

@test "reader and schema refuse the same" {
	refused 'efort: quick'
	refused 'effort: fast'
	refused 'effort: [quick]'
	refused 'calibrate: true'
	refused 'scrub_weight: 11'
	refused 'scrub_weight: -1'
	refused 'scrub_weight: "1"'
	refused 'memory: 3M'
	refused 'memory: {most: 3M}'
	refused 'memory: {most_bytes: 4096}'
	refused 'memory: {most_bytes: 16777215}'
	refused 'memory: {most_bytes: "4096"}'
	refused 'memory: {most_bytes: 16B}'
	refused 'memory: {most_bytes: 4K}'
	refused 'memory: {most_bytes: 9999.5 KiB}'
	refused 'memory: {most_bytes: 8M}'
	refused 'memory: {most_bytes: 015.99MB}'
	refused 'memory: {most_bytes: -1}'
	refused 'memory: {most_bytes: 4KK}'
	refused 'memory: {most_bytes: 1.5}'
	refused 'duty: 50'
	refused 'duty: {most_percent: 0}'
	refused 'duty: {most_percent: 2.5}'
	refused 'duty: {most_percent: 101}'
	refused 'quiet: {wait_seconds: -1}'
	refused 'quiet: {wait_seconds: 1m}'
	refused 'quiet: {wait_seconds: 86401}'
	refused 'quiet: {most_percent: 100.5}'
	refused 'quiet: {most: 10}'
	refused 'verify: {interval_days: "7"}'
	refused 'verify: {interval_days: 3651}'
	refused 'database: calibrd.db'
	refused 'policy: /etc/pageclear/'
	refused "policy: /$(printf 'p%.0s' {1..480})"
	refused 'exclude: movnti'
	refused 'exclude: [libc]'
	refused 'exclude: [memset]'
	refused 'pins: {}'
	refused 'pins: [hot]'
	refused 'pins: [{from: 0, kernel: libc}]'
	refused 'pins: [{intent: hot, kernel: libc}]'
	refused 'pins: [{intent: hot, from: 0}]'
	refused 'pins: [{intent: warm, from: 0, kernel: libc}]'
	refused 'pins: [{intent: hot, prior: any, from: 0, kernel: libc}]'
	refused 'pins: [{intent: scrub, prior: cached, from: 0, kernel: libc}]'
	refused 'pins: [{intent: hot, from: 0, kernel: rep}]'
	refused 'pins: [{intent: hot, from: 0, kernel: libc, chunk: 4}]'
	refused '- effort'
	refused 'effort: {'
}

@test "the points in which calibrd is stricter" {
	refused_by_calibrd 'pins: [{intent: hot, from: 4K, to: 4K, kernel: libc}]'
	refused_by_calibrd 'pins: [{intent: hot, from: 1M, to: 64K, kernel: libc}]'
	refused_by_calibrd 'pins: [{intent: hot, from: 17E, kernel: libc}]'
	refused_by_calibrd 'memory: {most_bytes: 99999999999999999999B}'
	refused_by_calibrd 'memory: {most_bytes: 16777215B}'
	refused_by_calibrd 'memory: {most_bytes: 16383K}'
	refused_by_calibrd 'memory: {most_bytes: 0.001G}'
	refused_by_calibrd 'verify: {interval_days: 0x7}'
}
