// Package helm steers a body: it is the device model at work in the real-time loop, one step per frame.
//
//	frame ─► senses ─► power ─► reasons to stop ─┐
//	orders ─► claims ────────────────────────────┴─► motion ─► duties, lights ─► the tree's values, Report
//
// Orders come from the robot's other programs through a mailbox. Each has an owner, and moves or lights only what the owner holds
// (package claim): a motion ends when its owner loses the actuator, by release, expiry, death or somebody of a higher priority. Stop needs no
// claim. Results go back through a ring: one for each order, and one more when a motion that was begun has ended.
//
// A motion of the treads always has a deadline (Order.For): who gave it may die before it is over. What a joint was told it holds as long as its
// owner holds the joint.
//
// Safety does not rest on who asks: a halt, a lost link, a gap in the rhythm, a cliff, a fall, lifted treads, a hot battery and a shutdown under way stop
// what they concern in the step that shows them (package motion), and nothing moves again before a new order.
//
// The helm keeps the robot's power too (power.Keeper): level, heat, charge, load shed, sleep debt and why it goes off follow each frame; who asks for
// calm and sleep does so by orders. Everything that is not measured comes in through the tape, if there is one, so that a recorded run can be done
// again (rt.Replay). Lights that no program uses say how the power is (Indicator).
//
// A body without inertial sensors cannot feel that it falls; four floor sensors without a floor then count as lifted. While nobody knows how the head
// stands that they sit in, before it is calibrated, they tell a fall and nothing else.
//
// The first frames of a body that was opened calibrate its joints (VEC-MOT-07), under a claim of the helm's own that anybody but an idle movement
// takes over, and not while a reason to stop holds.
package helm
