# What the files on calibctl's own verbs share: policies from tests/data/calibctl and databases made by
# tool-calibctl_database, in T. B is the build folder.

load common

make_subjects() {
	export B=${B:-build} DATA=tests/data/calibctl T=$BATS_FILE_TMPDIR
	unset PAGECLEAR_POLICY NO_COLOR
	# Three days after native.yaml was written, one after the databases' calibration.
	export SOURCE_DATE_EPOCH=1796035327
	# A copy, so that no run/ of the source tree is found.
	mkdir "$T/bin"
	cp "$B/calibctl" "$T/bin/calibctl"
	export CTL=$T/bin/calibctl

	make_native "$T/native.yaml"
	sed -e "s|quality: good|quality: noisy|" "$T/native.yaml" >"$T/noisy.yaml"
	sed -e "s|topology: .*|topology: \"0123456789ab\"|" "$T/native.yaml" >"$T/elsewhere.yaml"
	for scenario in good faulted failed running; do
		"$B/tool-calibctl_database" "$T/$scenario.db" "$TOPOLOGY" "$scenario"
	done
	"$B/tool-calibctl_database" "$T/other.db" ba9876543210 good
}

ctl() {
	"$CTL" --policy "$T/native.yaml" --database "$T/good.db" "$@"
}
