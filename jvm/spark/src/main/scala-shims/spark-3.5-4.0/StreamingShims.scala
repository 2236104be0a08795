// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming

// Aliases in the packages to which Spark 4.1 moved these classes.

package object checkpointing {
  type CheckpointFileManager = org.apache.spark.sql.execution.streaming.CheckpointFileManager
  type FileSystemBasedCheckpointFileManager =
    org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager
  type HDFSMetadataLog[A <: AnyRef] = org.apache.spark.sql.execution.streaming.HDFSMetadataLog[A]
  type OffsetSeqMetadata = org.apache.spark.sql.execution.streaming.OffsetSeqMetadata
  val CheckpointFileManager: org.apache.spark.sql.execution.streaming.CheckpointFileManager.type =
    org.apache.spark.sql.execution.streaming.CheckpointFileManager
  val OffsetSeqMetadata: org.apache.spark.sql.execution.streaming.OffsetSeqMetadata.type =
    org.apache.spark.sql.execution.streaming.OffsetSeqMetadata
}

package object runtime extends RuntimeShims {
  type AsyncProgressTrackingMicroBatchExecution =
    org.apache.spark.sql.execution.streaming.AsyncProgressTrackingMicroBatchExecution
  type IncrementalExecution = org.apache.spark.sql.execution.streaming.IncrementalExecution
  type MemoryStream[A] = org.apache.spark.sql.execution.streaming.MemoryStream[A]
  type MicroBatchExecution = org.apache.spark.sql.execution.streaming.MicroBatchExecution
  type StreamExecution = org.apache.spark.sql.execution.streaming.StreamExecution
  type StreamingExecutionRelation = org.apache.spark.sql.execution.streaming.StreamingExecutionRelation
  type StreamingQueryWrapper = org.apache.spark.sql.execution.streaming.StreamingQueryWrapper
  type WatermarkTracker = org.apache.spark.sql.execution.streaming.WatermarkTracker
  type QueryExecutionThread = org.apache.spark.sql.execution.streaming.QueryExecutionThread
  val AsyncProgressTrackingMicroBatchExecution
      : org.apache.spark.sql.execution.streaming.AsyncProgressTrackingMicroBatchExecution.type =
    org.apache.spark.sql.execution.streaming.AsyncProgressTrackingMicroBatchExecution
  val MicroBatchExecution: org.apache.spark.sql.execution.streaming.MicroBatchExecution.type =
    org.apache.spark.sql.execution.streaming.MicroBatchExecution
  val StreamExecution: org.apache.spark.sql.execution.streaming.StreamExecution.type =
    org.apache.spark.sql.execution.streaming.StreamExecution
}

package operators {
  package object stateful {
    type StateStoreWriter = org.apache.spark.sql.execution.streaming.StateStoreWriter
  }
}
