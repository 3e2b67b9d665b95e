# Words of every file here: what an output holds, and what this host is.

# bats sets output and stderr.
# shellcheck disable=SC2154

holds() {
	[[ $output == *"$1"* ]] || {
		printf 'expected: %s\nin: %s\n' "$1" "$output"
		return 1
	}
}

lacks() {
	[[ $output != *"$1"* ]] || {
		printf 'not expected: %s\nin: %s\n' "$1" "$output"
		return 1
	}
}

squeeze() {
	printf %s "$1" | tr -s ' \n' ' '
}

# Of wrapped text, as one line: a path's length decides where the lines break. Labels may be written as they stand there.
says() {
	local shown=$output
	output=$(squeeze "$output")
	holds "$(squeeze "$1")"
	output=$shown
}

# Wrong usage: exit status 2, a message that names the culprit, a hint, and nothing on stdout:
# wrong_usage CULPRIT HINT PROGRAM WORD...
wrong_usage() {
	local culprit=$1 hint=$2
	shift 2
	run -2 --separate-stderr "$@"
	[ -z "$output" ]
	output=$stderr
	holds "$culprit"
	holds "$hint"
}

# What /proc says of this CPU, as policy.yaml spells it: not asked from the program under test.
signature() {
	awk -F': *' '/^vendor_id/ { v = $2 } /^cpu family/ { f = $2 } /^model\t/ { m = $2 } /^stepping/ { s = $2 }
		/^$/ { exit } END { print v " " f "/" m "/" s }' /proc/cpuinfo
}

# A policy of this host in $1; CTL must be known, TOPOLOGY and CPU are afterwards.
make_native() {
	local data=tests/data/calibctl
	export TOPOLOGY CPU
	TOPOLOGY=$("$CTL" topology --json --policy "$data/foreign.yaml" | jq -r .topology)
	CPU=$(signature)
	sed -e "s|@CPU@|$CPU|" -e "s|@TOPOLOGY@|$TOPOLOGY|" "$data/native.yaml.in" >"$1"
}

need_x86() {
	[ "$(uname -m)" = x86_64 ] || skip "names x86_64 kernels, or reads the CPU's signature the x86 way"
}

need_root() {
	[ "$(id -u)" -eq 0 ] || skip "not root: nobody else to run as"
}
