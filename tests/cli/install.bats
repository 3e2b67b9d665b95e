#!/usr/bin/env bats
# make install and uninstall: everything where it is looked for, whatever the prefix, and nothing left but what is the
# administrator's.

# bats sets output.
# shellcheck disable=SC2154

load common

setup_file() {
	cd "$BATS_TEST_DIRNAME/../.." || return 1
	export B=${B:-build} W=$BATS_FILE_TMPDIR
	unset MAKEFLAGS MAKELEVEL MFLAGS
}

# install or uninstall, with a prefix
make_in() {
	make -s B="$B" "$1" DESTDIR="$W/root" PREFIX="$2"
}

files() {
	(cd "$W/root" && find . ! -type d | sort)
}

@test "the bus's policy and the vendor's configuration lie where they are read" {
	make_in install /usr
	run files
	holds "./usr/share/dbus-1/system.d/org.pageclear.Calibrd1.conf"
	holds "./usr/lib/pageclear/calibrd.yaml"
	holds "./etc/pageclear/calibrd.yaml"
	make_in uninstall /usr
	[ "$(files)" = ./etc/pageclear/calibrd.yaml ]
	make_in install /usr/local
	run files
	holds "./etc/dbus-1/system.d/org.pageclear.Calibrd1.conf"
	holds "./usr/local/lib/systemd/system/calibrd.service"
	holds "./usr/local/lib/pkgconfig/libpolicy.pc"
	lacks "./usr/local/lib/pageclear"
	make_in uninstall /usr/local
	[ "$(files)" = ./etc/pageclear/calibrd.yaml ]
}

@test "an administrator's configuration is not replaced" {
	mkdir -p "$W/root/etc/pageclear"
	echo "effort: quick" >"$W/root/etc/pageclear/calibrd.yaml"
	make_in install /usr
	make_in uninstall /usr
	[ "$(cat "$W/root/etc/pageclear/calibrd.yaml")" = "effort: quick" ]
}
