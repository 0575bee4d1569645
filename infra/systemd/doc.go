// Package systemd holds the units, accounts and folders of Kennel's programs on machines with systemd; it has no code.
//
//	on a server    kenneld@.service        roles against parts of your own: systemctl enable --now kenneld@all
//	               kenneld-onebox.service  everything on one machine
//	               kenneld-backup.timer    a backup each night of either
//	               kennel.sysusers, kennel.tmpfiles
//	on a robot     robotd.service          the real-time core, with watchdog
//	               agentd.service          all that faces the network, with watchdog
//	               mindd.service           animations and the face on the display
//	               robot-again@.timer      another try for each, a minute after it gave up
//	               robot.sysusers, robot.tmpfiles
//
// To install: programs to /usr/bin (kenneld-onebox needs s3d beside kenneld), units to /etc/systemd/system, NAME.sysusers to /usr/lib/sysusers.d/NAME.conf, NAME.tmpfiles to
// /usr/lib/tmpfiles.d/NAME.conf; then systemd-sysusers, systemd-tmpfiles --create, systemctl daemon-reload.
//
// On a server settings are in /etc/kennel/kenneld.yaml; kenneld ca init -dir /etc/kennel/ca makes the authorities, and kenneld prepare
// makes database and bucket ready, both as the account kennel. A robot's files lie below /var/lib/robot in the original's layout. On an
// original's own system, whose files are where the original has them, a drop-in sets ExecStart with -root / and User=root.
//
// For the nightly reboot (VEC-BOOT-16) agentd runs REBOOT_COMMAND of anki/etc/kennel-agent.env below the robot's root, such as /usr/bin/systemctl
// reboot, which the account robot needs polkit's leave for (org.freedesktop.login1.reboot). Without a command only agentd restarts, and reports it.
//
// The tests check the units with systemd's own checker, and cmd/e2e/deploy starts their command lines.
package systemd
