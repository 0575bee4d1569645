// Package lifeos is the operating system of a Pleo: it runs an application's Pawn scripts, and gives them sensors, joints, motions, sounds, properties, commands
// and drives, as the firmware of the robot does.
//
//	Hardware ──readings──► sensors ──triggers──► Sensor VM  on_sensor, on_property
//	    ▲                                        Main VM    main, again and again; drives
//	    │                                        Behavior VM  a script at a time
//	    └── joints, samples ◄── motions, sounds ◄── natives ── User VM   the startup script
//
// Scripts talk to each other through properties. Sounds, motions, commands and scripts are resources: they come from the SD card or from the dataflash, as single
// files or in a bundle (URF).
//
// A System is deterministic: it has no clock, no goroutine and no lock. Its host calls Step with the time since power-on; between two calls nothing happens.
// It belongs to one goroutine.
//
// Angles are degrees, forward, up and right positive, as scripts count them (PLEO-JNT-12); the standard names and signs of the joints are in package pleo.
package lifeos
