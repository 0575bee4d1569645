// Package ota decides which release a robot should run, and keeps the robot's reports on its way there.
//
// A release belongs to a species. What a person asked for one thing goes first, then rollouts (Rollouts, cloud/updates/rollout), then what a person
// asked for the whole species. The robot asks on every connect and once an hour (req/ota/desired), and again right before it begins; it reports
// each step on up/ota until the cloud answers that the report is stored. A report has an id, so that a repeated one counts once; it names the
// wish that it is about, and what the robot's next boot starts. What a wish installed is withdrawn before that boot if the wish is not the same any
// longer. The archives that carry a release are in ota/manifest and ota/archive, the changes between two in ota/delta. An agent that cannot apply
// archives answers Pending. The owner of a robot may move the time at which it begins (Choice). Robots with a root of trust also ask who vouches for an archive (ota/trust).
//
//	robot -> cloud  req/ota/desired  DesiredRequest, answered by Desired
//	robot -> cloud  up/ota           Status, answered by down/ack with the report's id as batch
//	cloud -> robot  down/ota         a hint that Desired changed; its payload is Desired
//
// A wish for one thing hints it at once. A wish for a species hints its present robots, HintRate a second, across restarts (hints.go); the others ask when they connect.
package ota
