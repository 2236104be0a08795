package org.apache.spark.sql.execution.streaming.state.dstl.tools

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
import org.apache.spark.sql.execution.streaming.state._

/** Reads schema files. What Spark reads them with itself wants a session. */
private[tools] final class SchemaFiles(id: StateStoreProviderId, configuration: Configuration, files: List[Path]) {

  /** The newest of them; where none is named it is the store's own. */
  def readSchemaFile(): List[StateStoreColFamilySchema] = {
    val file = files.lastOption.getOrElse(ofStore)
    StateSchemaCompatibilityChecker.readSchemaFile(CheckpointFileManager.create(file, configuration).open(file))
  }

  // As in Spark's `schemaFile`.
  private def ofStore: Path = new Path(new Path(id.storeId.storeCheckpointLocation(), "_metadata"), "schema")
}
