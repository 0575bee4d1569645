// Package natsserver administers a cluster of NATS servers as the robots' broker: it answers the servers' questions about logins, ends sessions,
// and takes the fleet's uplink from a replicated queue of the cluster.
//
// NATS servers speak MQTT 3.1.1 to robots. Every kenneld has two more connections to them, in NATS' own protocol with a certificate of the service
// authority: one in the robots' account and one in the system account.
//
//	robot  -- MQTT, device certificate -->  server  -- "who is this?" -->  Admin, in any kenneld (auth callout)
//	robot  -- kennel/<thing>/up/das    -->  server  -- stream KENNEL -->  Uplink, in one kenneld (work queue)
//	kenneld -- MQTT, kennel/<thing>/down/ack -->  server  -->  robot
//
// Rights (VEC-FLE-01). The answer to a login names the topics of that thing and nothing else; it ends with the certificate. Without any kenneld no
// robot can log in, but those that are in stay in, and the stream keeps what they publish.
//
// MQTT 3.1.1 has no shared subscriptions in NATS, so the cloud does not subscribe: the stream has the subjects of all uplink topics. A message is
// removed when one kenneld has taken it, and given to another if that one ends first. Delivery is guaranteed by the application's acknowledgement
// only (infra/adr/0001).
//
// What differs from the embedded broker: a thing may retain messages on its own up/ and req/ topics (NATS has no right for that), and a kicked
// thing's will is published.
package natsserver
