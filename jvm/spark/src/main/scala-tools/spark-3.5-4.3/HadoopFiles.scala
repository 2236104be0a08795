// SPDX-License-Identifier: Apache-2.0
package org.apache.spark.sql.execution.streaming.state.dstl.tools

import java.io.FileNotFoundException
import java.util.{Map => JavaMap}

import scala.jdk.CollectionConverters._

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs._

import sparkdstl.log.config.LogOptions
import sparkdstl.log.storage.{HadoopLogStorage, Payload}
import sparkdstl.log.storage.StorageOperation.{Create, Replace}

import org.apache.spark.SparkConf
import org.apache.spark.deploy.SparkHadoopUtil

/**
 * The file system of a directory, for programs outside of Java that have no client for it: Python calls it over py4j. Paths are
 * relative to the directory, without a leading slash.
 *
 * @param directory a URI
 * @param settings  of Spark, among them `spark.hadoop.` for the storage
 */
private[sql] final class HadoopFiles(directory: String, settings: JavaMap[String, String]) {
  private val configuration = StorageSettings.of(settings.asScala.toMap)
  private val fileSystem: FileSystem =
    HadoopLogStorage.withoutChecksums(new Path(directory).getFileSystem(configuration))
  private val root = fileSystem.makeQualified(new Path(directory))

  /** The type (`f` or `d`), length and modification time in milliseconds of a path, separated by tabs; null if it is missing. */
  def status(path: String): String =
    try line(fileSystem.getFileStatus(at(path)))
    catch { case _: FileNotFoundException => null }

  /** A line for each entry of a directory: as from [[status]], with the path at its end; null if the directory is missing. */
  def list(path: String, recursive: Boolean): String =
    try below(at(path), recursive).map(found => s"${line(found)}\t${relative(found.getPath)}").mkString("\n")
    catch { case _: FileNotFoundException => null }

  /** Opens a file. Fails with `FileNotFoundException` if it is missing. */
  def open(path: String): ReadFile = {
    val status = fileSystem.getFileStatus(at(path))
    if (status.isDirectory) throw new FileNotFoundException(s"${status.getPath} is a directory")
    new ReadFile(fileSystem.open(status.getPath), status.getLen)
  }

  /** Creates or replaces a file. */
  def create(path: String): FSDataOutputStream = fileSystem.create(at(path), true)

  /** Creates an object exclusively, as the log creates commit entries; returns false if it exists. */
  def createExclusively(path: String, content: Array[Byte]): Boolean =
    try {
      logStorage.perform(Create(at(path), Payload(content)))
      true
    } catch { case _: FileAlreadyExistsException => false }

  /** Creates or replaces an object as the log does: at once where the file system can. */
  def replace(path: String, content: Array[Byte]): Unit = logStorage.perform(Replace(at(path), Payload(content)))

  /** Creates a directory and its parents. */
  def makeDirectory(path: String): Boolean = fileSystem.mkdirs(at(path))

  /** Deletes a file or an empty directory; returns false if it is missing. */
  def delete(path: String): Boolean = fileSystem.delete(at(path), false)

  private def logStorage = HadoopLogStorage(configuration, root, LogOptions.parse(settings.asScala).publish)

  private def at(path: String): Path = if (path.isEmpty) root else new Path(root, new Path(null, null, path))

  private def below(path: Path, recursive: Boolean): Seq[FileStatus] = {
    val found = fileSystem.listStatus(path).toVector
    if (recursive) found.flatMap(one => if (one.isDirectory) one +: below(one.getPath, recursive) else Seq(one))
    else found
  }

  private def relative(path: Path): String = root.toUri.relativize(path.toUri).getPath

  private def line(status: FileStatus): String =
    s"${if (status.isDirectory) "d" else "f"}\t${status.getLen}\t${status.getModificationTime}"
}

/** An open file. Used by one thread at a time. */
private[sql] final class ReadFile(stream: FSDataInputStream, val size: Long) {

  /** Reads from an offset; fewer bytes if the file ends before. */
  def read(offset: Long, length: Int): Array[Byte] = {
    val content = new Array[Byte](math.max(0L, math.min(length.toLong, size - offset)).toInt)
    stream.readFully(offset, content)
    content
  }

  def close(): Unit = stream.close()
}

/** The storage's configuration outside of any application. */
private[tools] object StorageSettings {

  /** @param settings of Spark, among them `spark.hadoop.` for the storage */
  def of(settings: Map[String, String]): Configuration =
    SparkHadoopUtil.newConfiguration(new SparkConf(loadDefaults = false).setAll(settings))
}
