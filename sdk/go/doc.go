// Package kennel drives a robot over the network, whatever its species:
//
//	r, err := kennel.Connect(ctx, "robot.json")    // the file that the robot's owner made for this program
//	_, err = r.Go(ctx, 0.1)                        // metres; returns when the robot has arrived
//	_, err = r.Turn(ctx, math.Pi/2)                // radians, to the right
//	d, err := r.Read(ctx, "robot.body.laser.distance")
//
// A motion that ends otherwise than ordered is a *NotDone. A refusal, or a robot that cannot be reached, is an *Error. Package kennel for Python and
// kennel.mjs have the same calls (docs/sdk.md).
package kennel
