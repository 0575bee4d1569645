// Package brokeradmin administers a broker for the cloud: it ends a thing's session, refuses the thing from then on, and asks whether the
// broker is there. It has one adapter for each broker; brokeradmintest tests the behaviour that they share.
//
//	broker        Kick                                         own topics only (VEC-FLE-01)      a foreign client id
//	embedded      brokerapi.Kick as a message; with will       infra/mqtt/broker, by CN          refused
//	mosquitto     dynamic security: a change of the client;    a role for each thing, which      replaced by the
//	              without will                                 Provision makes                   certificate's name
//	natsserver    KICK of the server that has the session;     in the answer to each login       refused
//	              with will
//	awsiot        DeleteConnection of the data plane           policy with the thing's name      refused
//
//	broker        Block                                                       the revoked certificate itself
//	embedded      refused at CONNECT with a reason; a file of the broker      refused likewise, whatever its thing has now
//	mosquitto     no rights, though it may log in; the plugin's file          refused by the list of Broker.DeviceCRL (Reloader)
//	natsserver    logins are refused by every kenneld                         refused likewise
//	awsiot        the thing's certificates INACTIVE; AWS's registry           as long as it is INACTIVE
//
// Keep enforces the database's revocations in a broker, from every process of the cloud; NewEmbedded does so for the embedded one.
//
// Embedded, a real Mosquitto and a real NATS server pass the whole suite in every test run. AWS IoT Core cannot run here: its adapter is tested
// against a hand-written HTTP server that checks method, path, body and credentials as the public documentation states them, and its rules
// are compared with golden files. That does not prove that the real one agrees.
//
// What a broker does with a forbidden PUBLISH differs, because MQTT 3.1.1 has no negative acknowledgement: embedded and AWS end the
// connection, Mosquitto and NATS acknowledge and drop. No client receives it in any case, and our robots never send one.
package brokeradmin
