output "uplink_sqs_url" {
  description = "uplink.sqs.url of kenneld's settings."
  value       = aws_sqs_queue.uplink.url
}

output "database_host" {
  description = "Host for postgres.dsn; it follows the server that takes writes."
  value       = aws_rds_cluster.database.endpoint
}

output "database_administrator_secret" {
  description = "The administrator's password in AWS Secrets Manager, to make kenneld's account with."
  value       = aws_rds_cluster.database.master_user_secret[0].secret_arn
}

output "thing_policy" {
  description = "Policy for the certificate of each robot."
  value       = aws_iot_policy.thing.name
}

output "service_policy" {
  description = "Policy for the certificate of kenneld (mqtt.cert_file)."
  value       = aws_iot_policy.service.name
}

output "bucket" {
  description = "s3.bucket of kenneld's settings."
  value       = aws_s3_bucket.objects.bucket
}
