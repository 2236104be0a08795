package org.apache.spark.sql.execution.streaming.state.dstl.tools

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.Path

import org.apache.spark.sql.execution.streaming.state._

/** Reads schema files. Spark asks for their directory to be made, which a read-only file manager does not do. */
private[tools] final class SchemaFiles(id: StateStoreProviderId, configuration: Configuration, files: List[Path]) {

  /** The newest of them. */
  def readSchemaFile(): List[StateStoreColFamilySchema] =
    new StateSchemaCompatibilityChecker(id, configuration, oldSchemaFilePaths = files).readSchemaFile()
}
