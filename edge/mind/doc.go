// Package mind is a robot's character at work: it plays animations on the body that it finds, with their sounds, keeps the eyes on the display alive, draws the display, and speaks.
//
//	mindlink, programs ──► Play, Show, Eyes ──► loop ──30 ms──► clip.Player ──► Frame ──┬─► face ──► screen ──► Watch
//	                                              ▲  levels, locks                    └─► hand ──► orders ──► coreclient ──► robotd
//	                                              └──────── a motor is another program's, a motion was stopped ─────────────┘
//
// A clip's motors are claimed from robotd for as long as it plays; a program with a higher priority takes them, and the clip ends as a whole and says who has
// them. A track whose part the body lacks, or may not move now, is left out, and the caller hears which and why.
//
// Sounds are one mixer's (edge/sound), which a sink and all programs that listen hear. A pump maps the time of the loop to the mixer's samples: a second player of the
// same clip looks ahead and asks for its sounds, each at its keyframe's sample (track). Speech has the speaker alone among clips, and moves the eyes.
//
// One goroutine, the loop, has the player, the locks and the newest frame; everything else leaves requests for it. It sleeps while nothing plays and no program
// watches the display: an idle robot costs no processor.
package mind
