# Words of every file here: what an output holds, and what this host is.

# bats sets output.
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

# Of wrapped text, as one line: a path's length decides where the lines break.
says() {
	local shown=$output
	output=$(tr -s ' \n' ' ' <<<"$output")
	holds "$1"
	output=$shown
}

# What /proc says of this CPU, as policy.yaml spells it: not asked from the program under test.
signature() {
	awk -F': *' '/^vendor_id/ { v = $2 } /^cpu family/ { f = $2 } /^model\t/ { m = $2 } /^stepping/ { s = $2 }
		/^$/ { exit } END { print v " " f "/" m "/" s }' /proc/cpuinfo
}

need_x86() {
	[ "$(uname -m)" = x86_64 ] || skip "names x86_64 kernels, or reads the CPU's signature the x86 way"
}

need_root() {
	[ "$(id -u)" -eq 0 ] || skip "not root: nobody else to run as"
}
