// SPDX-License-Identifier: Apache-2.0
package sparkdstl.testing

import java.net.URI

import org.apache.hadoop.conf.Configuration
import org.apache.hadoop.fs.{DelegateToFileSystem, FileStatus, LocalFileSystem, Path, RawLocalFileSystem}
import org.apache.hadoop.fs.permission.FsPermission

/**
 * The local file system without permissions. Hadoop sets them by starting `chmod` for every file and directory, which
 * takes most of the time of tests with many small files.
 */
final class PlainLocalFileSystem extends LocalFileSystem(new PlainRawLocalFileSystem)

/** The same file system for Hadoop's `FileContext`, which Spark's default checkpoint file manager uses. */
final class PlainLocalFs(uri: URI, configuration: Configuration)
    extends DelegateToFileSystem(uri, new PlainRawLocalFileSystem, configuration, "file", false) {

  override def getUriDefaultPort: Int = -1

  override def isValidName(name: String): Boolean = true
}

private final class PlainRawLocalFileSystem extends RawLocalFileSystem {
  override def setPermission(path: Path, permission: FsPermission): Unit = ()
  override def getFileLinkStatus(path: Path): FileStatus = getFileStatus(path)
}
