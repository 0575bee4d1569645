# Kennel's ground in one AWS account: AWS IoT Core as the robots' broker, SQS as the uplink, Aurora, S3 and KMS. Never applied; see ../README.md.
terraform {
  required_version = ">= 1.6"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = ">= 5.40"
    }
  }
}

data "aws_caller_identity" "here" {}
data "aws_partition" "here" {}
data "aws_region" "here" {}

locals {
  account = data.aws_caller_identity.here.account_id
  region  = data.aws_region.here.name
  iot     = "arn:${data.aws_partition.here.partition}:iot:${local.region}:${local.account}"
}
