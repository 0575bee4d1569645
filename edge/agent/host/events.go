package host

import "kennel/infra/api/owners"

// Events of the bus. Beside them there are the messages of robotd (corelink.Message) and the acknowledgements of the cloud (ack.Ack).
type (
	// Dialing says that a connection to the cloud is about to be made.
	Dialing struct{}
	// LinkUp says that there is a connection to the cloud, LinkDown that there is none any longer. They come in order, one at a time.
	LinkUp   struct{}
	LinkDown struct{}

	// Consent is the cloud's word, over this connection, who the owner is and what they allow; the user data are theirs.
	Consent owners.Status
	// Consented says that what the owner allows is in force: logs and crashes may leave the robot, or may not any longer.
	Consented struct{}
	// Unowned is said at each connection of a robot that asks for no owner: all that it has may leave it.
	Unowned struct{}
	// Withhold says that nothing may leave the robot before the next Consent: it may be of a former owner.
	Withhold struct{}
	// Doubt says that the cloud knows of another owner, or of a no, before the robot does.
	Doubt struct{}

	// MaySync says that the documents are the owner's, and that the cloud can be reached.
	MaySync struct{}
	// Hint is the versions of documents that the cloud has, by their names.
	Hint map[string]uint64
	// Named says that the robot has a name.
	Named struct{}
)
