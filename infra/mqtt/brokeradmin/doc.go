// Package brokeradmin administers a broker for the cloud: it ends a thing's session, refuses the thing from then on, and asks whether the
// broker is there. It has one adapter for each broker; brokeradmintest tests the behaviour that they share.
//
//	broker        Kick                                         own topics only (VEC-FLE-01)      a foreign client id
//	embedded      brokerapi.Kick as a message; with will       infra/mqtt/broker, by CN          refused
//	mosquitto     dynamic security: a change of the client;    a role for each thing, which      replaced by the
//	              without will                                 Provision makes                   certificate's name
//	emqx          DELETE /api/v5/clients/{id}                  rules with ${clientid}            replaced
//	awsiot        DeleteConnection of the data plane           policy with the thing's name      refused
//
//	broker        Block                                                       the revoked certificate itself
//	embedded      refused at CONNECT with a reason; a file of the broker      refused likewise, whatever its thing has now
//	mosquitto     no rights, though it may log in; the plugin's file          refused by the list of Broker.DeviceCRL (Reloader)
//	emqx          banned by client id; EMQX's own tables                      as long as the ban
//	awsiot        the thing's certificates INACTIVE; AWS's registry           as long as it is INACTIVE
//
// Keep enforces the database's revocations in a broker, from every process of the cloud; NewEmbedded does so for the embedded one.
//
// Embedded and a real Mosquitto pass the whole suite in every test run. EMQX and AWS IoT Core cannot run here: their adapters are tested
// against hand-written HTTP servers that check method, path, body and credentials as the public documentation states them, and their rules
// are compared with golden files. That does not prove that the real ones agree.
//
// What a broker does with a forbidden PUBLISH differs, because MQTT 3.1.1 has no negative acknowledgement: embedded and AWS end the
// connection, Mosquitto acknowledges and drops. No client receives it in any case, and our robots never send one.
package brokeradmin
